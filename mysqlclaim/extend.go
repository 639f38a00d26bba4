package mysqlclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

func grantID(g core.Grant) core.ID { return g.ID }

func grantBytes(it item[core.Grant]) int {
	return literalBytes(len(it.v.ID)) + literalBytes(len(it.v.Holder)) + 40
}

// Extend is one UPDATE for each 500 grants, and one read-back where it changed
// fewer rows than that.
func (s *Store) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if len(grants) == 0 {
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return s.fail("extend", err)
	}
	var failed failures
	r := s.auto()
	for _, chunk := range chunks(sorted(grants, grantID), grantBytes) {
		changed, err := r.exec(ctx, s.extendStatement(chunk, until, r))
		if err != nil {
			return s.fail("extend", err)
		}
		if changed == len(chunk) {
			continue
		}
		rows, err := s.readBack(ctx, r, idList(chunk, grantID))
		if err != nil {
			return s.fail("extend", err)
		}
		for _, it := range chunk {
			failed.add(it.at, it.v.ID, rows[it.v.ID].Extended(it.v, until)) // a missing row is nobody's
		}
	}
	return failed.err()
}

func (s *Store) extendStatement(chunk []item[core.Grant], until time.Time, r runner) *text {
	values := table(chunk, []string{"id", "token", "holder"}, func(g core.Grant, next func() *text) {
		next().val(string(g.ID))
		next().int(g.Token)
		next().val(g.Holder)
	})
	ms := new(text).int(until.UnixMilli()).String()
	was := s.byValues("b.id", values, heldGuard+" AND b.lease_until < "+ms, len(chunk), r)
	return s.update(was).sql("t.lease_until = ", ms)
}

// heldGuard holds for a row that runs under the very grant in v.
const heldGuard = "b.status = 'running' AND b.token = v.token AND b.holder = v.holder"

package mysqlclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

func grantID(g core.Grant) core.ID { return g.ID }

func grantOf(g core.Grant) core.Grant { return g }

func grantBytes(it item[core.Grant]) int {
	return literalBytes(len(it.v.ID)) + literalBytes(len(it.v.Holder)) + 40
}

// Extend is one UPDATE for each 500 grants, and one read-back where it changed
// fewer rows than that; on MariaDB two UPDATEs where a row is locked.
func (s *Store) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if len(grants) == 0 {
		return nil
	}
	if err := s.ready(ctx, s.db); err != nil {
		return s.fail("extend", err)
	}
	var failed failures
	r := s.auto(time.Time{})
	for _, chunk := range chunks(sorted(grants, grantID), grantBytes) {
		changed, err := r.change(ctx, func(r runner) *text { return s.extendStatement(chunk, until, r) })
		if err != nil {
			return s.fail("extend", r.effect.prove(err))
		}
		if changed == len(chunk) {
			continue
		}
		rows, err := s.readBack(ctx, r, idList(chunk, grantID))
		if err != nil {
			return s.fail("extend", r.effect.prove(err))
		}
		for _, it := range chunk {
			failed.add(it.at, it.v.ID, rows[it.v.ID].Extended(it.v, until)) // a missing row is nobody's
		}
	}
	return failed.err()
}

func (s *Store) extendStatement(chunk []item[core.Grant], until time.Time, r runner) *text {
	ms := new(text).int(until.UnixMilli()).String()
	return setByGrants(s, chunk, grantOf, " AND lease_until < "+ms, "t.lease_until = "+ms, r)
}

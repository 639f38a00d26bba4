package mysqlclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Cancel is one UPDATE and one read-back for each 500 ids, and with
// DeleteFinished one DELETE.
func (s *Store) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := s.ready(ctx, s.db); err != nil {
		return nil, s.fail("cancel", err)
	}
	fates := make([]core.Fate, len(ids))
	var failed failures
	r := s.auto(call.By)
	for _, chunk := range chunks(sorted(ids, sameID), idBytes(sameID)) {
		if err := s.cancelChunk(ctx, r, call.Now, chunk, fates, &failed); err != nil {
			return nil, s.fail("cancel", r.effect.prove(err))
		}
	}
	return fates, failed.err()
}

func (s *Store) cancelChunk(ctx context.Context, r runner, now time.Time, chunk []item[core.ID], fates []core.Fate, failed *failures) error {
	ids := idList(chunk, sameID)
	if _, err := r.exec(ctx, s.cancelStatement(ids, now, len(chunk), r)); err != nil {
		return err
	}
	rows, err := s.readBack(ctx, r, ids)
	if err != nil {
		return err
	}
	cancelled := 0
	for _, it := range chunk {
		row, ok := rows[it.v]
		if !ok {
			fates[it.at] = core.Unknown
			continue
		}
		fate, ok := row.Fate()
		if !ok {
			failed.add(it.at, it.v, core.ErrBusy)
		}
		if row.Status == claim.Cancelled {
			cancelled++
		}
		fates[it.at] = fate
	}
	if !s.deleteFinished || cancelled == 0 {
		return nil
	}
	// Deleted only after its fate was read, so that a repeat after a lost reply of
	// the first statement still learns it. What a crash leaves here Purge takes.
	was := s.byIDs("id", ids, func(t *text) { t.sql("status = 'cancelled'") }, len(chunk), r)
	_, err = r.exec(ctx, s.remove(was))
	return err
}

func (s *Store) cancelStatement(ids func(*text), now time.Time, n int, r runner) *text {
	was := s.byIDs("id, status, lease_until", ids, func(t *text) { t.sql("status IN ('pending', 'running')").andInTime(r.by) }, n, r)
	ms := now.UnixMilli()
	t := s.update(was).sql("t.status = 'cancelled', t.due = NULL, t.finished_at = ").int(ms)
	return t.sql(", t.lease_until = IF(was.status = 'running' AND was.lease_until >= ").int(ms).sql(", was.lease_until, 0)")
}

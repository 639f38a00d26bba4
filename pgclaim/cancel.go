package pgclaim

import (
	"context"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

var cancelSQL = by("$4", `
WITH picked AS MATERIALIZED (
  SELECT r.id FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
    SELECT t.id FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id AND {live}
       FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE {table} AS t
   SET status = 'cancelled', due = NULL, finished_at = $3::bigint,
       lease_until = CASE WHEN t.status = 'running' AND t.lease_until >= $3::bigint THEN t.lease_until ELSE 0 END
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked)) AND {live}
RETURNING {inTime}, t.status, t.lease_until`)

// cancelDeleteSQL answers like cancelSQL what the row would have become.
var cancelDeleteSQL = by("$4", `
WITH picked AS MATERIALIZED (
  SELECT r.id FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
    SELECT t.id FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id AND {live}
       FOR UPDATE SKIP LOCKED) AS r)
DELETE FROM {table} AS t
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked)) AND {live}
RETURNING {inTime}, 'cancelled'::text, CASE WHEN t.status = 'running' AND t.lease_until >= $3::bigint THEN t.lease_until ELSE 0 END`)

const seeAllSQL = `
SELECT t.id, t.status, t.lease_until, coalesce(t.due, 0) FROM {table} AS t
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[]))) AND {durable}`

// Cancel implements core.Store: one round trip when every id was live, a second
// one to see what the others were. A row that is locked, or that a trigger or a
// row security policy doesn't let change, fails with core.ErrBusy and has no Fate.
func (s *Store) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	r, err := s.runner(ctx)
	if err != nil {
		return nil, s.fail("cancel", err)
	}
	statement := s.sql.cancel
	if s.deleteFinished {
		statement = s.sql.cancelDelete
	}
	fates := make([]core.Fate, len(ids))
	var failed []core.ItemError
	for b := range batches(ids, func(id core.ID) core.ID { return id }, nil) {
		left := b.open()
		err := r.run(ctx, statement, []any{s.queue, b.ids(), call.Now.UnixMilli(), byOf(call.By)}, func(scan scanner) error {
			var id, status string
			var row claim.Row
			if err := scan(&id, &status, &row.LeaseUntil); err != nil {
				return err
			}
			row.Status = claim.Status(status)
			if place, ok := left.take(id); ok {
				fates[place], _ = row.Fate()
			}
			return nil
		})
		if err != nil {
			return nil, s.fail("cancel", err)
		}
		err = s.seeAll(ctx, r, left, func(row claim.Row, place int) {
			fate, ok := row.Fate()
			if !ok {
				failed = append(failed, core.ItemError{Index: place, ID: row.ID, Err: core.ErrBusy})
			}
			fates[place] = fate
		})
		if err != nil {
			return nil, s.fail("cancel", err)
		}
		for _, place := range left {
			fates[place] = core.Unknown
		}
	}
	return fates, batchError(failed)
}

// seeAll reads back the rows that a statement left alone; those that aren't
// there stay in left.
func (s *Store) seeAll(ctx context.Context, r runner, left open, judge func(claim.Row, int)) error {
	if len(left) == 0 {
		return nil
	}
	return r.run(ctx, s.sql.seeAll, []any{s.queue, left.ids()}, func(scan scanner) error {
		var row claim.Row
		var id, status string
		if err := scan(&id, &status, &row.LeaseUntil, &row.Due); err != nil {
			return err
		}
		row.ID, row.Status = core.ID(id), claim.Status(status)
		if place, ok := left.take(id); ok {
			judge(row, place)
		}
		return nil
	})
}

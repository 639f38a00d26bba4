package pgclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// waitingSQL walks the due index in its order, from one key to another. Bounds and
// limit stand in subqueries and the filter in CASE, so that the planner guesses the
// number of rows as fixed parts of the table and not from statistics: with a guess
// of a few rows it would read them all and sort.
const waitingSQL = `
SELECT t.id, t.due FROM {table} AS t
 WHERE (t.queue, t.due, t.id) > ((SELECT $1::text), (SELECT $2::bigint), (SELECT $3::text))
   AND (t.queue, t.due) < ((SELECT $1::text), (SELECT $4::bigint)) AND t.due IS NOT NULL
   AND CASE t.status WHEN 'running' THEN t.lease_until < $5::bigint ELSE t.status = 'pending' END
 ORDER BY t.queue, t.due, t.id LIMIT (SELECT $6::bigint)`

const purgeSQL = `
WITH picked AS MATERIALIZED (
  SELECT t.id FROM {table} AS t
   WHERE t.queue = $1::text AND t.finished_at IS NOT NULL AND t.finished_at < $2::bigint
     AND t.status IN ('done', 'cancelled')
   ORDER BY t.finished_at LIMIT $3::bigint
     FOR UPDATE SKIP LOCKED)
DELETE FROM {table} AS t
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked))
   AND coalesce(t.finished_at, $2::bigint) < $2::bigint AND t.status IN ('done', 'cancelled')
RETURNING t.id`

// Waiting implements core.Claimer: one scan of the due index, in its order.
func (s *Store) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	r, err := s.runner(ctx)
	if err != nil {
		return nil, s.fail("waiting", err)
	}
	if limit <= 0 {
		return nil, nil
	}
	afterDue := int64(-1) // before every due time
	if after != (core.Entry{}) {
		afterDue = after.Due.UnixMilli()
	}
	var out []core.Entry
	args := []any{s.queue, afterDue, string(after.ID), before.UnixMilli(), now.UnixMilli(), int64(limit)}
	err = r.run(ctx, s.sql.waiting, args, func(scan scanner) error {
		var id string
		var due int64
		if err := scan(&id, &due); err != nil {
			return err
		}
		out = append(out, core.Entry{ID: core.ID(id), Due: claim.Time(due)})
		return nil
	})
	if err != nil {
		return nil, s.fail("waiting", err)
	}
	return out, nil
}

// Now implements core.TimeSource: the server's clock, to the microsecond, when
// the statement arrived there.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, err := s.now(ctx)
	return now, s.fail("now", err)
}

// Purge implements core.Purger: the oldest finished rows first, locked ones
// passed over.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	r, err := s.runner(ctx)
	if err != nil {
		return 0, s.fail("purge", err)
	}
	if limit <= 0 {
		return 0, nil
	}
	n := 0
	err = r.run(ctx, s.sql.purge, []any{s.queue, before.UnixMilli(), int64(limit)}, func(scanner) error {
		n++
		return nil
	})
	if err != nil {
		return 0, s.fail("purge", err)
	}
	return n, nil
}

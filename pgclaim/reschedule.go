package pgclaim

import (
	"context"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

var rescheduleSQL = by("$5", `
WITH picked AS MATERIALIZED (
  SELECT a.* FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS a(id, old, new) CROSS JOIN LATERAL (
    SELECT t.id FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id AND t.status = 'pending'
       AND (a.old = -1 OR coalesce(t.due, -2) = a.old) AND coalesce(t.due, -2) <> a.new
       FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE {table} AS t SET due = a.new, planned = a.new
  FROM picked AS a
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked)) AND t.id = a.id AND t.status = 'pending'
       AND (a.old = -1 OR coalesce(t.due, -2) = a.old) AND coalesce(t.due, -2) <> a.new
RETURNING {inTime}`)

// anyDue stands for a Move's zero From.
const anyDue = -1

// Reschedule implements core.Store: one round trip when all moved, a second one to
// see why not. A locked row fails with core.ErrBusy.
func (s *Store) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	if len(moves) == 0 {
		return nil
	}
	r, err := s.runner(ctx)
	if err != nil {
		return s.fail("reschedule", err)
	}
	var failed []core.ItemError
	for b := range batches(moves, func(m core.Move) core.ID { return m.ID }, nil) {
		left := b.open()
		args := []any{s.queue, b.ids(),
			column(b, func(m core.Move) int64 {
				if m.From.IsZero() {
					return anyDue
				}
				return m.From.UnixMilli()
			}),
			column(b, func(m core.Move) int64 { return m.To.UnixMilli() }),
			byOf(call.By),
		}
		if err := r.run(ctx, s.sql.reschedule, args, strike(left)); err != nil {
			return s.fail("reschedule", err)
		}
		fail := func(place int, err error) {
			if err != nil {
				failed = append(failed, core.ItemError{Index: place, ID: moves[place].ID, Err: err})
			}
		}
		err := s.seeAll(ctx, r, left, func(row claim.Row, place int) { fail(place, row.Rescheduled(moves[place])) })
		if err != nil {
			return s.fail("reschedule", err)
		}
		for _, place := range left {
			fail(place, core.ErrNotPending)
		}
	}
	return batchError(failed)
}

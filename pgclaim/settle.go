package pgclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

const settleSQL = `
WITH picked AS MATERIALIZED (
  SELECT a.*, r.place FROM unnest($2::text[], $3::bigint[], $4::text[], $6::text[], $7::bigint[], $8::boolean[], $9::text[])
         AS a(id, token, holder, status, due, released, err) CROSS JOIN LATERAL (
    SELECT t.ctid AS place FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id AND {granted}
       FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE {table} AS t
   SET status = a.status, lease_until = 0,
       due = CASE a.status WHEN 'pending' THEN a.due END,
       planned = CASE WHEN a.status = 'pending' AND NOT a.released THEN a.due ELSE t.planned END,
       attempts = t.attempts - CASE WHEN a.released THEN 1 ELSE 0 END,
       last_error = CASE WHEN a.status = 'dead' OR (a.status = 'pending' AND NOT a.released) THEN a.err ELSE t.last_error END,
       finished_at = CASE WHEN a.status <> 'pending' THEN $5::bigint END
  FROM picked AS a
 WHERE {found} AND t.id = a.id AND {granted}
RETURNING t.id`

const deleteDoneSQL = `
WITH picked AS MATERIALIZED (
  SELECT a.id, r.place FROM unnest($2::text[], $3::bigint[], $4::text[]) AS a(id, token, holder) CROSS JOIN LATERAL (
    SELECT t.ctid AS place FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id AND {granted}
       FOR UPDATE SKIP LOCKED) AS r)
DELETE FROM {table} AS t
 WHERE {found} AND t.status = 'running'
RETURNING t.id`

// Settle implements core.Claimer: one round trip when all settlements took
// effect (two with Options.DeleteFinished and other outcomes than Done beside
// it), one more to see why not. A locked row fails with core.ErrBusy.
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	r, err := s.runner(ctx)
	if err != nil {
		return s.fail("settle", err)
	}
	failed, err := s.settle(ctx, r, now, settlements, s.settling())
	if err != nil {
		return s.fail("settle", err)
	}
	return batchError(failed)
}

// settling is what differs between Settle and SettleTx: whether the statements
// wait for locked rows, and what it means that they didn't change a row.
type settling struct {
	update, deleteDone string
	unchanged          func(claim.Row, core.Grant) error
}

func (s *Store) settling() settling {
	return settling{s.sql.settle, s.sql.deleteDone, claim.Row.Settled}
}

func (s *Store) settlingTx() settling {
	return settling{s.sql.settleTx, s.sql.deleteDoneTx, claim.Row.SettledTx}
}

func (s *Store) settle(ctx context.Context, r runner, now time.Time, settlements []core.Settlement, how settling) ([]core.ItemError, error) {
	var failed []core.ItemError
	for b := range batches(settlements, settledID, func(x core.Settlement) int { return len(x.Err) }) {
		left := b.open()
		written, gone := b, batch[core.Settlement]{items: b.items, id: b.id}
		if s.deleteFinished {
			written, gone = split(b, func(x core.Settlement) bool { return x.Outcome == core.Done })
		}
		if len(written.places) > 0 {
			if err := r.run(ctx, how.update, s.settleArgs(written, now), strike(left)); err != nil {
				return nil, err
			}
		}
		// What is deleted comes last: a repeat finds what was written, but not what is gone.
		if len(gone.places) > 0 {
			args := append([]any{s.queue}, grantColumns(gone, settledGrant)...)
			if err := r.run(ctx, how.deleteDone, args, strike(left)); err != nil {
				return nil, err
			}
		}
		items, err := s.seeGrants(ctx, r, left, func(row claim.Row, place int) error {
			return how.unchanged(row, settlements[place].Grant)
		})
		if err != nil {
			return nil, err
		}
		failed = append(failed, items...)
	}
	return failed, nil
}

func (s *Store) settleArgs(b batch[core.Settlement], now time.Time) []any {
	args := append([]any{s.queue}, grantColumns(b, settledGrant)...)
	return append(args, now.UnixMilli(),
		column(b, func(x core.Settlement) string { return string(statusAfter(x.Outcome)) }),
		column(b, func(x core.Settlement) int64 {
			if statusAfter(x.Outcome) != claim.Pending {
				return 0 // not used
			}
			return x.Due.UnixMilli()
		}),
		column(b, func(x core.Settlement) bool { return x.Outcome == core.Released }),
		column(b, func(x core.Settlement) string { return x.Err }),
	)
}

func settledID(x core.Settlement) core.ID       { return x.Grant.ID }
func settledGrant(x core.Settlement) core.Grant { return x.Grant }

func statusAfter(o core.Outcome) claim.Status {
	switch o {
	case core.Done:
		return claim.DoneState
	case core.DeadLetter:
		return claim.DeadState
	default:
		return claim.Pending
	}
}

// split parts a batch in two, keeping its order.
func split[T any](b batch[T], second func(T) bool) (rest, chosen batch[T]) {
	rest, chosen = batch[T]{items: b.items, id: b.id}, batch[T]{items: b.items, id: b.id}
	for _, place := range b.places {
		if second(b.items[place]) {
			chosen.places = append(chosen.places, place)
		} else {
			rest.places = append(rest.places, place)
		}
	}
	return rest, chosen
}

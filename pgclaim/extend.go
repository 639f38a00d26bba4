package pgclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

const extendSQL = `
WITH picked AS MATERIALIZED (
  SELECT r.place FROM unnest($2::text[], $3::bigint[], $4::text[]) AS a(id, token, holder) CROSS JOIN LATERAL (
    SELECT t.ctid AS place FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id AND {granted} AND t.lease_until < $5::bigint
       FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE {table} AS t SET lease_until = $5::bigint
 WHERE {found} AND t.status = 'running' AND t.lease_until < $5::bigint
RETURNING t.id`

const seeGrantsSQL = `
SELECT t.id, t.status, t.token, t.holder, t.lease_until FROM {table} AS t
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[]))) AND {durable}`

// Extend implements core.Claimer: one round trip when all leases got longer, a
// second one to see why not. A locked row fails with core.ErrBusy.
func (s *Store) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if len(grants) == 0 {
		return nil
	}
	r, err := s.runner(ctx)
	if err != nil {
		return s.fail("extend", err)
	}
	var failed []core.ItemError
	for b := range batches(grants, func(g core.Grant) core.ID { return g.ID }, nil) {
		left := b.open()
		args := append([]any{s.queue}, grantColumns(b, func(g core.Grant) core.Grant { return g })...)
		if err := r.run(ctx, s.sql.extend, append(args, until.UnixMilli()), strike(left)); err != nil {
			return s.fail("extend", err)
		}
		items, err := s.seeGrants(ctx, r, left, func(row claim.Row, place int) error {
			return row.Extended(grants[place], until)
		})
		if err != nil {
			return s.fail("extend", err)
		}
		failed = append(failed, items...)
	}
	return batchError(failed)
}

// grantColumns makes the arrays of ids, tokens and holders.
func grantColumns[T any](b batch[T], grant func(T) core.Grant) []any {
	return []any{
		b.ids(),
		column(b, func(item T) int64 { return grant(item).Token }),
		column(b, func(item T) string { return grant(item).Holder }),
	}
}

// strike takes each id that a statement returned off the list.
func strike(left open) func(scanner) error {
	return func(scan scanner) error {
		var id string
		if err := scan(&id); err != nil {
			return err
		}
		left.take(id)
		return nil
	}
}

// seeGrants reads back the rows that a statement on grants left alone, and
// returns the failures that judge sees. Rows that aren't there are lost.
func (s *Store) seeGrants(ctx context.Context, r runner, left open, judge func(claim.Row, int) error) ([]core.ItemError, error) {
	if len(left) == 0 {
		return nil, nil
	}
	var failed []core.ItemError
	err := r.run(ctx, s.sql.seeGrants, []any{s.queue, left.ids()}, func(scan scanner) error {
		var row claim.Row
		var id, status string
		if err := scan(&id, &status, &row.Token, &row.Holder, &row.LeaseUntil); err != nil {
			return err
		}
		row.ID, row.Status = core.ID(id), claim.Status(status)
		if place, ok := left.take(id); ok {
			if err := judge(row, place); err != nil {
				failed = append(failed, core.ItemError{Index: place, ID: row.ID, Err: err})
			}
		}
		return nil
	})
	for id, place := range left {
		failed = append(failed, core.ItemError{Index: place, ID: core.ID(id), Err: core.ErrLeaseLost})
	}
	return failed, err
}

package pgclaim

import (
	"context"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

var claimSQL = by("$7", `
WITH picked AS MATERIALIZED (
  SELECT r.place FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
    SELECT t.ctid AS place FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id
       AND {claimable}
       FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE {table} AS t
   SET status = 'running', token = t.token + 1, holder = $3::text, lease_until = $6::bigint,
       attempts = t.attempts + 1, crashes = t.crashes + CASE t.status WHEN 'running' THEN 1 ELSE 0 END
 WHERE {found} AND {claimable} AND {hex}
RETURNING {inTime}, t.due, t.planned, t.token, t.attempts, t.crashes, t.max_attempts, t.kind, t.payload, t.meta`)

const seeClaimsSQL = `
SELECT t.id, t.status, coalesce(t.due, 0), t.planned, t.token, t.holder, t.lease_until,
       t.attempts, t.crashes, t.max_attempts, t.kind,
       CASE WHEN t.status = 'running' AND t.holder = $3::text THEN t.payload END,
       CASE WHEN t.status = 'running' AND t.holder = $3::text THEN t.meta END
  FROM {table} AS t
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[]))) AND {hex}
   AND (t.status <> 'running' OR t.holder <> $3::text OR {durable})`

// Claim implements core.Claimer. It takes one round trip when every id is
// granted; the others are read back in a second one, so that the verdict about a
// row which somebody else just took is made of what he wrote. A row that is
// locked, and one that a trigger or a row security policy doesn't let change, is
// Refused.
func (s *Store) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	r, err := s.runner(ctx)
	if err != nil {
		return nil, s.fail("claim", err)
	}
	out := make([]core.Claimed, len(ids))
	for b := range batches(ids, func(id core.ID) core.ID { return id }, nil) {
		if err := s.claim(ctx, r, b, lease, out); err != nil {
			return nil, s.fail("claim", err)
		}
	}
	return out, nil
}

func (s *Store) claim(ctx context.Context, r runner, b batch[core.ID], lease core.Lease, out []core.Claimed) error {
	left := b.open()
	args := []any{s.queue, b.ids(), lease.Holder, lease.DueBy.UnixMilli(), lease.Now.UnixMilli(), lease.Until.UnixMilli(), byOf(lease.By)}
	err := r.run(ctx, s.sql.claim, args, func(scan scanner) error {
		row := claim.Row{Status: claim.Running, Holder: lease.Holder, LeaseUntil: lease.Until.UnixMilli()}
		var id string
		if err := scan(&id, &row.Due, &row.Planned, &row.Token, &row.Attempts, &row.Crashes, &row.MaxAttempts,
			&row.Kind, &row.Payload, &row.Meta); err != nil {
			return err
		}
		answer(left, id, row, lease, out)
		return nil
	})
	if err != nil || len(left) == 0 {
		return err
	}
	err = r.run(ctx, s.sql.seeClaims, []any{s.queue, left.ids(), lease.Holder}, func(scan scanner) error {
		var row claim.Row
		var id, status string
		if err := scan(&id, &status, &row.Due, &row.Planned, &row.Token, &row.Holder, &row.LeaseUntil,
			&row.Attempts, &row.Crashes, &row.MaxAttempts, &row.Kind, &row.Payload, &row.Meta); err != nil {
			return err
		}
		row.Status = claim.Status(status)
		answer(left, id, row, lease, out)
		return nil
	})
	for id, place := range left {
		out[place] = claim.Gone(core.ID(id))
	}
	return err
}

func answer(left open, id string, row claim.Row, lease core.Lease, out []core.Claimed) {
	if place, ok := left.take(id); ok {
		row.ID = core.ID(id)
		out[place] = row.Claimed(lease)
	}
}

package sqliteclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// The + keeps the planner from the index on due, in which all that is due stands.
const claimSQL = `
UPDATE $table SET
	status = 'running', token = token + 1, holder = ?3, lease_until = ?4,
	attempts = attempts + 1, crashes = crashes + (status = 'running')
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2)) AND +due <= ?5
	AND (status = 'pending' OR (status = 'running' AND lease_until < ?6 AND holder <> ?3))
RETURNING id, status, holder, lease_until, token, planned, attempts, crashes, max_attempts, kind, payload, meta`

const claimedSQL = `
SELECT id, status, holder, lease_until, token, planned, attempts, crashes, max_attempts, kind,
	CASE holder WHEN ?3 THEN payload END, CASE holder WHEN ?3 THEN meta END, coalesce(due, 0)
FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

func claimedColumns(r *claim.Row) []any {
	return []any{(*string)(&r.ID), (*string)(&r.Status), &r.Holder, &r.LeaseUntil, &r.Token, &r.Planned, &r.Attempts, &r.Crashes,
		&r.MaxAttempts, &r.Kind, &r.Payload, &r.Meta}
}

// Claim implements [core.Claimer].
func (s *Store) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	var claimed []core.Claimed
	for _, chunk := range claim.Chunks(ids, maxItems, 0, nil) {
		err := s.write(ctx, func(q querier) error {
			c, err := s.claimIn(ctx, q, chunk, lease)
			claimed = append(claimed, c...)
			return err
		})
		if err != nil {
			return nil, s.wrap("claim", err)
		}
	}
	return claimed, nil
}

func (s *Store) claimIn(ctx context.Context, q querier, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	rows, err := s.readBack(ctx, q, s.sql.claim, ids, claimedColumns,
		lease.Holder, millis(lease.Until), lease.DueBy.UnixMilli(), lease.Now.UnixMilli())
	if err != nil {
		return nil, err
	}
	if len(rows) < len(ids) {
		var others []core.ID
		for _, id := range ids {
			if _, ok := rows[id]; !ok {
				others = append(others, id)
			}
		}
		found, err := s.readBack(ctx, q, s.sql.claimed, others, func(r *claim.Row) []any { return append(claimedColumns(r), &r.Due) }, lease.Holder)
		if err != nil {
			return nil, err
		}
		for id, r := range found {
			rows[id] = r
		}
	}
	claimed := make([]core.Claimed, len(ids))
	for i, id := range ids {
		if r, ok := rows[id]; ok {
			claimed[i] = r.Claimed(lease)
		} else {
			claimed[i] = claim.Gone(id)
		}
	}
	return claimed, nil
}

const extendSQL = `
UPDATE $table SET lease_until = max(lease_until, ?5)
WHERE queue = ?1 AND id = ?2 AND status = 'running' AND token = ?3 AND holder = ?4`

const extendedSQL = `
SELECT id, status, token, holder, lease_until FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Extend implements [core.Claimer].
func (s *Store) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	var failed []core.ItemError
	for start, chunk := range claim.Chunks(grants, maxItems, 0, nil) {
		err := s.write(ctx, func(q querier) error {
			errs, err := s.extendIn(ctx, q, chunk, until)
			failed = appendErrors(failed, start, errs)
			return err
		})
		if err != nil {
			return s.wrap("extend", err)
		}
	}
	return core.NewBatchError(failed)
}

func (s *Store) extendIn(ctx context.Context, q querier, grants []core.Grant, until time.Time) ([]core.ItemError, error) {
	b := newBatch(q)
	defer b.close()
	var refused []int
	for i, g := range grants {
		n, err := b.run(ctx, s.sql.extend, s.queue, string(g.ID), g.Token, g.Holder, millis(until))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			refused = append(refused, i)
		}
	}
	return s.reasons(ctx, q, s.sql.extended, refused,
		func(i int) core.ID { return grants[i].ID },
		func(r *claim.Row) []any {
			return []any{(*string)(&r.ID), (*string)(&r.Status), &r.Token, &r.Holder, &r.LeaseUntil}
		},
		func(r claim.Row, i int) error { return r.Extended(grants[i], until) })
}

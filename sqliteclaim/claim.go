package sqliteclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

const claimSQL = `
UPDATE $table SET
	status = 'running', token = token + 1, holder = ?3, lease_until = ?4,
	attempts = attempts + 1, crashes = crashes + (status = 'running')
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2)) AND due <= ?5
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
UPDATE $table AS t SET lease_until = max(t.lease_until, ?3)
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS holder FROM json_each(?2)) AS j
WHERE t.queue = ?1 AND t.id = j.id AND t.status = 'running' AND t.token = j.token AND t.holder = j.holder`

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
	var batch array
	ids := make([]core.ID, len(grants))
	for i, g := range grants {
		ids[i] = g.ID
		if g.ID.Check() == nil {
			batch.open()
			batch.grant(g)
			batch.close()
		}
	}
	n, err := changed(ctx, q, s.sql.extend, s.queue, batch.done(), millis(until))
	if err != nil || n == len(grants) {
		return nil, err
	}
	rows, err := s.readBack(ctx, q, s.sql.extended, ids, func(r *claim.Row) []any {
		return []any{(*string)(&r.ID), (*string)(&r.Status), &r.Token, &r.Holder, &r.LeaseUntil}
	})
	if err != nil {
		return nil, err
	}
	var errs []core.ItemError
	for i, g := range grants {
		if err := rows[g.ID].Extended(g, until); err != nil {
			errs = append(errs, core.ItemError{Index: i, ID: g.ID, Err: err})
		}
	}
	return errs, nil
}

func (a *array) grant(g core.Grant) {
	a.text(string(g.ID))
	a.int(g.Token)
	a.text(g.Holder)
}

package sqliteclaim

import (
	"cmp"
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// The + keeps the planner from the index on due, in which all that is due stands.
// What comes back is what the statement didn't set to a value of its own.
const claimSQL = `
UPDATE $table SET
	status = 'running', token = token + 1, holder = ?3, lease_until = ?4,
	attempts = attempts + 1, crashes = crashes + (status = 'running')
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2)) AND +due <= ?5
	AND (status = 'pending' OR (status = 'running' AND lease_until < ?6 AND holder <> ?3))
RETURNING id, token, due, planned, attempts, crashes, max_attempts, kind, payload, meta`

const claimedSQL = `
SELECT id, token, coalesce(due, 0), planned, attempts, crashes, max_attempts, kind,
	CASE holder WHEN ?3 THEN payload END, CASE holder WHEN ?3 THEN meta END,
	status, holder, lease_until
FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Claim implements [core.Claimer].
func (s *Store) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	var claimed []core.Claimed
	err := claim.InChunks(ids, maxItems, 0, nil, func(ids []core.ID) error {
		var c []core.Claimed
		err := s.do(ctx, "claim", len(ids), lease.By, func(q querier) (err error) {
			c, err = s.claimIn(ctx, q, ids, lease)
			return err
		})
		claimed = append(claimed, c...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func (s *Store) claimIn(ctx context.Context, q querier, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	claimed := make([]core.Claimed, len(ids))
	place := make(map[string]int, len(ids))
	for i, id := range ids {
		claimed[i], place[string(id)] = claim.Gone(id), i
	}
	// The rows are read into one and the same variable: what is kept of it is copied.
	r := claim.Row{Status: claim.Running, Holder: lease.Holder, LeaseUntil: millis(lease.Until)}
	columns := []any{(*string)(&r.ID), &r.Token, &r.Due, &r.Planned, &r.Attempts, &r.Crashes, &r.MaxAttempts, &r.Kind, &r.Payload, &r.Meta}
	read := func(scan scanner) error {
		r.Payload, r.Meta = nil, nil
		if err := scan(columns...); err != nil {
			return err
		}
		if i, ok := place[string(r.ID)]; ok {
			r.ID = ids[i]
			tokens.saw(r.Token)
			claimed[i] = r.Claimed(lease)
			delete(place, string(r.ID))
		}
		return nil
	}
	err := q.query(ctx, s.sql.claim, read, s.queue, idArray(ids), lease.Holder, millis(lease.Until), lease.DueBy.UnixMilli(), lease.Now.UnixMilli())
	if err != nil || len(place) == 0 {
		return claimed, err
	}
	others := make([]core.ID, 0, len(place))
	for _, id := range ids {
		if _, ok := place[string(id)]; ok {
			others = append(others, id)
		}
	}
	columns = append(columns, (*string)(&r.Status), &r.Holder, &r.LeaseUntil)
	return claimed, q.query(ctx, s.sql.claimed, read, s.queue, idArray(others), lease.Holder)
}

const extendSQL = `
UPDATE $table SET lease_until = max(lease_until, ?5)
WHERE queue = ?1 AND id = ?2 AND status = 'running' AND token = ?3 AND holder = ?4`

const extendedSQL = `
SELECT id, status, token, holder, lease_until FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Extend implements [core.Claimer].
func (s *Store) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return claim.InChunks(grants, maxItems, 0, nil, func(grants []core.Grant) error {
		var refused []core.ItemError
		err := s.do(ctx, "extend", len(grants), never, func(q querier) (err error) {
			refused, err = s.extendIn(ctx, q, grants, until)
			return err
		})
		return cmp.Or(err, core.NewBatchError(refused))
	})
}

func (s *Store) extendIn(ctx context.Context, q querier, grants []core.Grant, until time.Time) ([]core.ItemError, error) {
	var refused []int
	for i, g := range grants {
		n, err := q.exec(ctx, s.sql.extend, s.queue, string(g.ID), g.Token, g.Holder, millis(until))
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

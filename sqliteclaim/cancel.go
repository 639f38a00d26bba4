package sqliteclaim

import (
	"cmp"
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

const cancelSQL = `
UPDATE $table SET
	status = 'cancelled', due = NULL, finished_at = ?3,
	lease_until = CASE WHEN status = 'running' AND lease_until >= ?3 THEN lease_until ELSE 0 END
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2)) AND status IN ('pending', 'running')`

// It returns what the row would be now had it been kept.
const deleteCancelledSQL = `
DELETE FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2)) AND status IN ('pending', 'running')
RETURNING id, 'cancelled', CASE WHEN status = 'running' AND lease_until >= ?3 THEN lease_until ELSE 0 END`

const cancelledSQL = `
SELECT id, status, lease_until FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Cancel implements [core.Store].
func (s *Store) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	var fates []core.Fate
	err := claim.InChunks(ids, maxItems, 0, nil, func(ids []core.ID) error {
		var f []core.Fate
		err := s.do(ctx, "cancel", len(ids), call.By, func(q querier) (err error) {
			f, err = s.cancelIn(ctx, q, call.Now, ids)
			return err
		})
		fates = append(fates, f...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return fates, nil
}

func (s *Store) cancelIn(ctx context.Context, q querier, now time.Time, ids []core.ID) ([]core.Fate, error) {
	columns := func(r *claim.Row) []any { return []any{(*string)(&r.ID), (*string)(&r.Status), &r.LeaseUntil} }
	var deleted map[core.ID]claim.Row
	var err error
	if s.delete {
		deleted, err = s.readBack(ctx, q, s.sql.deleteCancelled, ids, columns, now.UnixMilli())
	} else {
		_, err = q.exec(ctx, s.sql.cancel, s.queue, idArray(ids), now.UnixMilli())
	}
	if err != nil {
		return nil, err
	}
	kept, err := s.readBack(ctx, q, s.sql.cancelled, ids, columns)
	if err != nil {
		return nil, err
	}
	fates := make([]core.Fate, len(ids))
	for i, id := range ids {
		fates[i] = core.Unknown
		if r, ok := deleted[id]; ok {
			fates[i], _ = r.Fate()
		} else if r, ok := kept[id]; ok {
			fates[i], _ = r.Fate()
		}
	}
	return fates, nil
}

const rescheduleSQL = `
UPDATE $table SET due = ?3, planned = ?3
WHERE queue = ?1 AND id = ?2 AND status = 'pending' AND due <> ?3 AND due = coalesce(?4, due)`

const rescheduledSQL = `
SELECT id, status, coalesce(due, 0) FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Reschedule implements [core.Store].
func (s *Store) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	return claim.InChunks(moves, maxItems, 0, nil, func(moves []core.Move) error {
		var refused []core.ItemError
		err := s.do(ctx, "reschedule", len(moves), call.By, func(q querier) (err error) {
			refused, err = s.rescheduleIn(ctx, q, moves)
			return err
		})
		return cmp.Or(err, core.NewBatchError(refused))
	})
}

func (s *Store) rescheduleIn(ctx context.Context, q querier, moves []core.Move) ([]core.ItemError, error) {
	var refused []int
	for i, m := range moves {
		var from any // NULL: whatever it is
		if !m.From.IsZero() {
			from = m.From.UnixMilli()
		}
		n, err := q.exec(ctx, s.sql.reschedule, s.queue, string(m.ID), m.To.UnixMilli(), from)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			refused = append(refused, i)
		}
	}
	return s.reasons(ctx, q, s.sql.rescheduled, refused,
		func(i int) core.ID { return moves[i].ID },
		func(r *claim.Row) []any { return []any{(*string)(&r.ID), (*string)(&r.Status), &r.Due} },
		func(r claim.Row, i int) error { return r.Rescheduled(moves[i]) })
}

package sqliteclaim

import (
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
func (s *Store) Cancel(ctx context.Context, now time.Time, ids []core.ID) ([]core.Fate, error) {
	var fates []core.Fate
	for _, chunk := range claim.Chunks(ids, maxItems, 0, nil) {
		err := s.write(ctx, func(q querier) error {
			f, err := s.cancelIn(ctx, q, now, chunk)
			fates = append(fates, f...)
			return err
		})
		if err != nil {
			return nil, s.wrap("cancel", err)
		}
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
		_, err = q.ExecContext(ctx, s.sql.cancel, s.queue, idArray(ids), now.UnixMilli())
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
UPDATE $table AS t SET due = j.due, planned = j.due
FROM (SELECT value ->> 0 AS id, value ->> 1 AS before, value ->> 2 AS due FROM json_each(?2)) AS j
WHERE t.queue = ?1 AND t.id = j.id AND t.status = 'pending' AND t.due <> j.due AND t.due = coalesce(j.before, t.due)`

const rescheduledSQL = `
SELECT id, status, coalesce(due, 0) FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Reschedule implements [core.Store].
func (s *Store) Reschedule(ctx context.Context, _ time.Time, moves []core.Move) error {
	var failed []core.ItemError
	for start, chunk := range claim.Chunks(moves, maxItems, 0, nil) {
		err := s.write(ctx, func(q querier) error {
			errs, err := s.rescheduleIn(ctx, q, chunk)
			failed = appendErrors(failed, start, errs)
			return err
		})
		if err != nil {
			return s.wrap("reschedule", err)
		}
	}
	return core.NewBatchError(failed)
}

func (s *Store) rescheduleIn(ctx context.Context, q querier, moves []core.Move) ([]core.ItemError, error) {
	var batch array
	ids := make([]core.ID, len(moves))
	for i, m := range moves {
		ids[i] = m.ID
		if m.ID.Check() != nil {
			continue
		}
		batch.open()
		batch.text(string(m.ID))
		if m.From.IsZero() {
			batch.null()
		} else {
			batch.int(m.From.UnixMilli())
		}
		batch.int(m.To.UnixMilli())
		batch.close()
	}
	n, err := changed(ctx, q, s.sql.reschedule, s.queue, batch.done())
	if err != nil || n == len(moves) {
		return nil, err
	}
	rows, err := s.readBack(ctx, q, s.sql.rescheduled, ids, func(r *claim.Row) []any { return []any{(*string)(&r.ID), (*string)(&r.Status), &r.Due} })
	if err != nil {
		return nil, err
	}
	var errs []core.ItemError
	for i, m := range moves {
		if err := rows[m.ID].Rescheduled(m); err != nil {
			errs = append(errs, core.ItemError{Index: i, ID: m.ID, Err: err})
		}
	}
	return errs, nil
}

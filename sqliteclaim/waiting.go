package sqliteclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

const waitingSQL = `
SELECT id, due FROM $table
WHERE queue = ?1 AND (due, id) > (?2, ?3) AND due < ?4 AND NOT (status = 'running' AND lease_until >= ?5)
ORDER BY due, id LIMIT ?6`

// Waiting implements [core.Claimer]. It only reads, which in WAL mode
// doesn't wait for writers.
func (s *Store) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	var entries []core.Entry
	err := s.wait(ctx, func() error {
		entries = nil
		return each(ctx, s.db, s.sql.waiting, func(scan scanner) error {
			var e core.Entry
			var due int64
			err := scan((*string)(&e.ID), &due)
			e.Due = claim.Time(due)
			entries = append(entries, e)
			return err
		}, s.queue, after.Due.UnixMilli(), string(after.ID), millis(before), now.UnixMilli(), limit)
	})
	if err != nil {
		return nil, s.wrap("waiting", err)
	}
	return entries, nil
}

const purgeSQL = `
DELETE FROM $table WHERE queue = ?1 AND id IN (
	SELECT id FROM $table
	WHERE queue = ?1 AND status IN ('done', 'cancelled') AND finished_at < ?2
	ORDER BY finished_at, id LIMIT ?3)`

// Purge implements [core.Purger].
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	purged := 0
	for limit > 0 {
		ask, n := min(limit, maxItems), 0
		err := s.write(ctx, ask, func(q querier) error {
			changed, err := q.exec(ctx, s.sql.purge, s.queue, millis(before), ask)
			n = int(changed)
			return err
		})
		if err != nil {
			return purged, s.wrap("purge", err)
		}
		purged += n
		if n < ask {
			break
		}
		limit -= n
	}
	return purged, nil
}

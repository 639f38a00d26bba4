package naive

import (
	"context"
	"time"
)

// Purge implements core.Purger.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if err := s.enter(ctx, 1); err != nil {
		return 0, err
	}
	s.across("purge without the queue", func(other *Store) { _, _ = other.Purge(ctx, before, limit) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.locked) > 0 && s.is("purge stops at a locked row") {
		return 0, nil
	}
	n := 0
	for id, r := range s.rows {
		old := r.finished.Before(before) || s.is("purge bound inclusive") && r.finished.Equal(before)
		finished := !r.live() && (r.state != "dead" || s.is("purge takes the dead"))
		if finished && old && !s.lockedFor(id) && (n < limit || s.is("purge limit ignored")) {
			delete(s.rows, id)
			n++
		}
	}
	return n, nil
}

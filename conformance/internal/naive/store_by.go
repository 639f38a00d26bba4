package naive

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// enterBy is enter for a call that has a By.
func (s *Store) enterBy(ctx context.Context, call string, by time.Time, items int) error {
	before := late(by)
	if err := s.enter(ctx, items); err != nil {
		return err
	}
	switch {
	case s.is(call + " ignores By"):
		return nil
	case s.is("waits for locks and forgets By"):
		for locked := true; locked && ctx.Err() == nil; time.Sleep(time.Millisecond) {
			s.set(func() { locked = len(s.locked) > 0 })
		}
		return ctx.Err()
	case s.is("By looked at before the wait"):
		return before
	case s.is("By is taken for the start") && !by.IsZero():
		return late(by.Add(-2 * time.Minute))
	}
	return late(by)
}

// late is core.ErrNotDone when the clock is past by.
func late(by time.Time) error {
	if by.IsZero() || !time.Now().After(by) {
		return nil
	}
	return core.ErrNotDone
}

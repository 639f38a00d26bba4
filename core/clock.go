package core

import (
	"context"
	"sync"
	"time"
)

// processStart anchors monotonic.
var processStart = time.Now()

// monotonic returns the process's monotonic clock as a duration since an
// arbitrary start.
func monotonic() time.Duration { return time.Since(processStart) }

// clock tells the store's time between two readings of it.
//
// now = the store's clock as read + the monotonic time since the reading
// arrived. The reading was made before it arrived, so this is a lower bound of
// the store's time: nothing starts early.
type clock struct {
	read func(ctx context.Context) (time.Time, error) // nil: set by hand

	mu       sync.RWMutex
	cur      reading
	old      reading       // the reckoning before the last step forward
	oldUntil time.Duration // on the monotonic clock; take-overs go by old until then
}

type reading struct {
	store time.Time
	at    time.Duration // on the monotonic clock, when the reading arrived
}

func (r reading) now() time.Time { return r.store.Add(monotonic() - r.at) }

// newClock returns a clock that reads src, or the process's clock where src is
// not a TimeSource. It must be synced once before use.
func newClock(src Claimer) *clock {
	if ts, ok := src.(TimeSource); ok {
		return &clock{read: ts.Now}
	}
	return &clock{read: func(context.Context) (time.Time, error) { return time.Now(), nil }}
}

// fixedClock returns a clock that shows now and goes on from there.
func fixedClock(now time.Time) *clock {
	return &clock{cur: reading{store: now.Round(0), at: monotonic()}}
}

// now returns the store's time.
func (c *clock) now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cur.now()
}

// takeOver returns the store's time to judge other processes' leases by. For a
// while after a step forward it is the old reckoning, so that the others can
// extend their leases first.
func (c *clock) takeOver() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if monotonic() < c.oldUntil {
		return c.old.now()
	}
	return c.cur.now()
}

// slowReading is a reading's travel time from which another one is tried: the
// bound that it gives is too loose.
const slowReading = 20 * time.Millisecond

// sync reads the store's clock and returns by how much the reckoning jumped.
// After a jump forward by more than margin, takeOver holds back for patience.
func (c *clock) sync(ctx context.Context, margin, patience time.Duration) (step time.Duration, err error) {
	if c.read == nil {
		return 0, nil
	}
	var best reading
	for range 3 {
		sent := monotonic()
		t, err := c.read(ctx)
		if err != nil {
			if best.store.IsZero() {
				return 0, err
			}
			break
		}
		r := reading{store: t.Round(0), at: monotonic()}
		if best.store.IsZero() || r.now().After(best.now()) {
			best = r
		}
		if r.at-sent < slowReading {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cur.store.IsZero() {
		step = best.now().Sub(c.cur.now())
		if step > margin {
			c.old, c.oldUntil = c.cur, monotonic()+patience
		}
	}
	c.cur = best
	return step, nil
}

// lag returns how old the last reading is; very old where there is none.
func (c *clock) lag() time.Duration {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.cur.store.IsZero() {
		return 1<<63 - 1
	}
	return monotonic() - c.cur.at
}

// until returns how long it is until the store's clock shows t, at the earliest.
func (c *clock) until(t time.Time) time.Duration { return t.Sub(c.now()) }

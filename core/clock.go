package core

import (
	"context"
	"sync"
	"time"
)

// clock tells the store's time between two readings of it.
//
// now = the store's clock as read + the monotonic time since the reading
// arrived. The reading was made before it arrived, so this is a lower bound of
// the store's time: nothing starts early.
type clock struct {
	read func(ctx context.Context) (time.Time, error) // nil: set by hand
	born time.Time                                    // where mono starts

	mu       sync.RWMutex
	cur      reading
	old      reading       // the reckoning before the last step forward
	oldUntil time.Duration // on the monotonic clock; take-overs go by old until then
}

type reading struct {
	store time.Time
	at    time.Duration // on the monotonic clock, when the reading arrived
	loose time.Duration // how long it travelled: the store's time may be later by that
}

func (r reading) then(at time.Duration) time.Time { return r.store.Add(at - r.at) }

// mono returns the process's monotonic clock, which no step of a wall clock
// touches, as the time since c was made. The zero Duration is in the past.
func (c *clock) mono() time.Duration { return time.Since(c.born) + 1 }

// newClock returns a clock that reads src, or the process's clock where src is
// not a TimeSource. It must be synced once before use.
func newClock(src Claimer) *clock {
	if ts, ok := src.(TimeSource); ok {
		return &clock{read: ts.Now, born: time.Now()}
	}
	process := func(context.Context) (time.Time, error) { return time.Now(), nil }
	return &clock{read: process, born: time.Now()}
}

// fixedClock returns a clock that shows now and goes on from there.
func fixedClock(now time.Time) *clock {
	return &clock{cur: reading{store: now.Round(0)}, born: time.Now()}
}

// now returns the store's time.
func (c *clock) now() time.Time { return c.at(c.mono()) }

// at returns the store's time at an instant of the monotonic clock.
func (c *clock) at(mono time.Duration) time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cur.then(mono)
}

// lease returns the store's time for a lease that is asked for now, and how much of
// it may be gone already, as the store's clock may be ahead of the reckoning.
func (c *clock) lease() (now time.Time, gone time.Duration) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cur.then(c.mono()), c.cur.loose
}

// takeOver returns the store's time to judge other processes' leases by. For a
// while after a step forward it is the old reckoning, so that the others can
// extend their leases first.
func (c *clock) takeOver() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.mono() < c.oldUntil {
		return c.old.then(c.mono())
	}
	return c.cur.then(c.mono())
}

// slowReading is a reading's travel time from which another one is tried: the
// bound that it gives is too loose.
const slowReading = 20 * time.Millisecond

// sync reads the store's clock and returns by how much the reckoning jumped.
// After a jump forward by more than margin, takeOver holds back for patience.
//
// A reading that arrives when ctx is done counts as none: in a process that was
// stopped meanwhile it could be of any age, and the leases asked for by it would be
// over from the start.
func (c *clock) sync(ctx context.Context, margin, patience time.Duration) (step time.Duration, err error) {
	if c.read == nil {
		return 0, nil
	}
	var best reading
	for range 3 {
		sent := c.mono()
		t, err := c.read(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if best.store.IsZero() {
				return 0, err
			}
			break
		}
		r := reading{store: t.Round(0), at: c.mono()}
		r.loose = r.at - sent
		if best.store.IsZero() || r.store.After(best.then(r.at)) {
			best = r
		}
		if r.loose < slowReading {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cur.store.IsZero() {
		step = best.store.Sub(c.cur.then(best.at))
		if step > margin {
			if c.mono() >= c.oldUntil { // else the others have not seen the step before either
				c.old = c.cur
			}
			c.oldUntil = c.mono() + patience
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
	return c.mono() - c.cur.at
}

// by returns the store's time at which ctx ends, so that a call gives up there when it
// does here: at the latest by what the reckoning lags behind. Zero where ctx has no end,
// or the clock is set by hand and says nothing of the store's.
func (c *clock) by(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok || c.read == nil {
		return time.Time{}
	}
	return CeilMilli(c.now().Add(time.Until(end)))
}

// until returns how long it is until the store's clock shows t, at the earliest.
func (c *clock) until(t time.Time) time.Duration { return t.Sub(c.now()) }

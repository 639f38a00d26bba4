package simulation

import (
	"sync"
	"time"
)

// clock is the store's clock: the bubble's, off by up to ten minutes, and set by
// some seconds now and then.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
	steps  []step
}

type step struct {
	at time.Time // bubble time
	by time.Duration
}

// memoryOfSteps is how long a step back may still be felt: a reckoning is made from
// a reading of a heartbeat ago, a claim is repeated for some thirty seconds with the
// times that it began with, and its effect may come fifteen seconds late.
const memoryOfSteps = 90 * time.Second

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset).Round(0).UTC()
}

func (c *clock) step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
	c.steps = append(c.steps, step{time.Now(), by})
}

// slack is by how much a reckoning may be ahead of the store's clock because that
// was set back.
func (c *clock) slack() (back time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.steps {
		if s.by < 0 && time.Since(s.at) < memoryOfSteps {
			back -= s.by
		}
	}
	return back
}

// set tells whether the clock was set since t, in bubble time.
func (c *clock) set(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.steps) > 0 && c.steps[len(c.steps)-1].at.After(t.Add(-memoryOfSteps))
}

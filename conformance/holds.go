package conformance

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A call gets this long while another holds the whole backend.
const heldWait = 200 * time.Millisecond

// held makes calls while another holds the whole backend: first one that may wait for
// as long as it takes, then those of attempts, each with little time and all at once,
// so that they wait for the first one too where the adapter lets them. Twice, since the
// first round may come before that one. It returns when the backend is free again. What
// was given up may have taken effect or not: the caller repeats it.
func (c *caseT) held(hold func() (release func()), first attempt, attempts []attempt) {
	release := hold()
	var long, short sync.WaitGroup
	c.cleanup(long.Wait)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.spawn(&long, func() { _ = first.call(ctx) })
	for range 2 {
		var mu sync.Mutex
		waiting := make([]string, len(attempts)) // guarded by mu
		for i, a := range attempts {
			waiting[i] = a.method
		}
		for _, a := range attempts {
			c.spawn(&short, func() {
				ctx, cancel := context.WithTimeout(c.ctx, heldWait)
				defer cancel()
				_ = a.call(ctx)
				mu.Lock()
				defer mu.Unlock()
				i := slices.Index(waiting, a.method)
				waiting = slices.Delete(waiting, i, i+1)
			})
		}
		returned := make(chan struct{})
		go func() { defer close(returned); short.Wait() }()
		select {
		case <-returned:
			continue
		case <-time.After(heldWait + c.patience/2):
		}
		mu.Lock()
		c.Errorf("while another held the whole backend: %q didn't return within %s after their ctx was done, want them back soon", waiting, c.patience/2)
		mu.Unlock()
		break
	}
	release()
	short.Wait()
	long.Wait()
}

package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// caseT collects what a running case finds. testify's require and assert take
// it in place of a *testing.T, which only the goroutine of a test may end.
type caseT struct {
	ctx      context.Context
	patience time.Duration

	mu       sync.Mutex
	failures []string
	serial   int
	cleanups []func()
}

// Failures beyond this many say nothing new.
const maxFailures = 5

// Errorf records a failure; the case goes on.
func (c *caseT) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.failures) < maxFailures:
		c.failures = append(c.failures, fmt.Sprintf(format, args...))
	case len(c.failures) == maxFailures:
		c.failures = append(c.failures, "… and more")
	}
}

// FailNow ends the goroutine that calls it.
func (c *caseT) FailNow() { runtime.Goexit() }

// guard calls f; a panic in it becomes a failure, with the stack.
func (c *caseT) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			buf := make([]byte, 64<<10)
			c.Errorf("panic: %v\n%s", p, buf[:runtime.Stack(buf, false)])
		}
	}()
	f()
}

// spawn calls f in a goroutine of wg, guarded.
func (c *caseT) spawn(wg *sync.WaitGroup, f func()) {
	wg.Go(func() { c.guard(f) })
}

// cleanup has f called when the case has ended, the last one first.
func (c *caseT) cleanup(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleanups = append(c.cleanups, f)
}

// release is f to be called once: by the case or, where it fails or hangs, after
// it.
func (c *caseT) release(f func()) func() {
	f = sync.OnceFunc(f)
	c.cleanup(f)
	return f
}

func (c *caseT) cleanUp() {
	c.mu.Lock()
	list := c.cleanups
	c.cleanups = nil
	c.mu.Unlock()
	for _, f := range slices.Backward(list) {
		f()
	}
}

// unique returns a name that is new in this case and short enough for a
// Call.ID or a Lease.Holder.
func (c *caseT) unique(prefix string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	return fmt.Sprintf("%s-%d", prefix, c.serial)
}

// wait polls until ok or until a correct backend would long have got there.
func (c *caseT) wait(ok func() bool) bool {
	for end := time.Now().Add(c.patience); ; {
		if ok() {
			return true
		}
		if time.Now().After(end) || c.ctx.Err() != nil {
			return false
		}
		time.Sleep(2 * time.Millisecond) // between two polls
	}
}

// insist repeats a call whose outcome is unknown with the same arguments, as
// core does. It returns nil, a *core.BatchError, or the last error of many.
func (c *caseT) insist(call func() error) error {
	var err error
	for try := range 200 {
		err = call()
		var batch *core.BatchError
		if err == nil || errors.As(err, &batch) || c.ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Duration(min(try, 20)) * time.Millisecond) // back off, as core does
	}
	return fmt.Errorf("still failing after 200 repeats: %w", err)
}

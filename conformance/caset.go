package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
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
	broken   string // the rule that was broken, where it isn't the case's own
	hook     string // which hook of the suite's caller is running
	idle     func() error
	serial   int
	cleanups []func()
}

// Failures beyond this many say nothing new.
const maxFailures = 5

// Errorf records a failure; the case goes on.
func (c *caseT) Errorf(format string, args ...any) {
	text := plain(fmt.Sprintf(format, args...))
	if where := here(); where != "" && !strings.Contains(text, placed) {
		text += placed + where
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.failures) < maxFailures:
		c.failures = append(c.failures, text)
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
			c.panicked(p)
		}
	}()
	f()
}

// panicked records a panic, with the stack of the first one. The deferred function that
// recovered it must call it.
func (c *caseT) panicked(p any) {
	said := fmt.Sprintf("%s panics: %v", c.doing(), p)
	c.mu.Lock()
	told := slices.ContainsFunc(c.failures, func(text string) bool { return strings.HasPrefix(text, said+"\n") })
	c.mu.Unlock()
	if told {
		return // in another goroutine
	}
	buf := make([]byte, 64<<10)
	stack := string(buf[:runtime.Stack(buf, false)])
	head, rest, _ := strings.Cut(stack, "\n")
	if i := strings.LastIndex(rest, "\npanic("); i >= 0 { // what comes before is the recovery
		rest = strings.Join(strings.SplitN(rest[i+1:], "\n", 3)[2:], "")
	}
	c.Errorf("%s\n%s\n%s", said, head, rest)
}

// spawn calls f in a goroutine of wg, guarded.
func (c *caseT) spawn(wg *sync.WaitGroup, f func()) {
	wg.Go(func() { c.guard(f) })
}

// made calls a hook of the suite's caller, which must not return nil.
func made[T any](c *caseT, hook string, call func() T) T {
	c.enter("the hook " + hook)
	part := call()
	c.enter("") // not deferred: where the hook panics it is still what runs
	if isNil(part) {
		c.breaks("What a hook of the suite returns isn't nil.")
		c.Errorf("%s returned nil", hook)
		c.FailNow()
	}
	return part
}

func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Interface, reflect.Slice:
		return r.IsNil()
	default:
		return false
	}
}

func (c *caseT) enter(hook string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
}

// doing says what runs: the case, or a hook that it called.
func (c *caseT) doing() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.hook, "the case")
}

// breaks says which rule is broken, where it isn't the one that the case is about.
func (c *caseT) breaks(rule string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = cmp.Or(c.broken, rule)
}

// calm tells whether nothing failed.
func (c *caseT) calm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.failures) == 0
}

// wantIdle fails where something is held or open still though the case is over. A
// call that was given up may be on its way back for a moment.
func (c *caseT) wantIdle() {
	if c.idle == nil || !c.calm() {
		return
	}
	c.enter("the hook Idle")
	var err error
	patient := c.patience
	c.patience /= 4 // nothing is to be done any more
	defer func() { c.patience = patient }()
	if !c.wait(func() bool { err = c.idle(); return err == nil }) {
		c.breaks("When its methods have returned a backend holds nothing and has nothing open: no transaction, lock, cursor or connection in use.")
		c.Errorf("after the case was over, Idle: %v", err)
	}
	c.enter("")
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

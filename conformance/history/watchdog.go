package history

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance/internal/owner"
)

// A history that takes longer than this hangs; the slowest real ones need seconds.
const hanging = 60 * time.Second

// watchdog bounds what runs on a goroutine of its own, from one sign of life to
// the next: a call that never returns can be abandoned, but not ended.
type watchdog struct {
	limit time.Duration
	timer *time.Timer

	mu     sync.Mutex
	given  bool // what runs was given up
	played int  // histories before this one
	steps  []string
}

// newWatchdog starts the time of the first history. limit is 0 for the default.
func newWatchdog(limit time.Duration) *watchdog {
	limit = cmp.Or(limit, hanging)
	return &watchdog{limit: limit, timer: time.NewTimer(limit)}
}

// watch runs f until it returns, and says what went wrong otherwise: a panic, with
// its stack, or a hang, with those of all goroutines. Where f ended t, so does watch, after
// a call of last, unless that is nil.
func (w *watchdog) watch(t *testing.T, f, last func()) (failure string) {
	t.Helper()
	defer w.timer.Stop()
	over := make(chan string, 1)
	returned := false
	go owner.Do(t.Context(), t.Name(), func() {
		text := ""
		defer func() { over <- text }()
		defer func() {
			if p := recover(); p != nil {
				returned, text = true, panicked(p)
			}
		}()
		f()
		returned = true
	})
	select {
	case text := <-over:
		if !returned && t.Skipped() {
			t.SkipNow()
		}
		if !returned {
			if last != nil {
				last()
			}
			t.FailNow()
		}
		return text
	case <-w.timer.C:
		w.mu.Lock()
		w.given = true
		w.mu.Unlock()
		buf := make([]byte, 1<<20)
		return fmt.Sprintf("the history hangs: not over after %s; all goroutines:\n%s", w.limit, buf[:runtime.Stack(buf, true)])
	}
}

// alive says that a history begins.
func (w *watchdog) alive(played int) {
	w.mu.Lock()
	w.played = played
	w.mu.Unlock()
	w.again()
}

// again says that a history begins which was played before.
func (w *watchdog) again() {
	w.mu.Lock()
	w.steps = nil
	w.mu.Unlock()
	w.live()
	w.timer.Reset(w.limit)
}

// note keeps a step for the text about a hang.
func (w *watchdog) note(step string) {
	w.live()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, step)
}

// live ends a goroutine that was given up, should its call return after all: the
// test may be over.
func (w *watchdog) live() {
	w.mu.Lock()
	given := w.given
	w.mu.Unlock()
	if given {
		runtime.Goexit()
	}
}

// saw returns how many histories were played before the one that runs, and what it did.
func (w *watchdog) saw() (played int, steps []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.played, slices.Clone(w.steps)
}

// panicked is the text of a recovered panic. It quotes the stack, so that it must
// be called by the deferred function.
func panicked(p any) string { return fmt.Sprintf("panic: %v\n%s", p, debug.Stack()) }

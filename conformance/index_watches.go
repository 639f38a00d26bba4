package conformance

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var indexWatches = []testCase[*indexEnv]{
	{
		name: "watch/earlier-head", needs: "Watcher",
		rule: "Watch calls notify when an entry came that is earlier than all others, put there by any process.",
		run: func(e *indexEnv) {
			w := e.watch()
			defer w.stop(e)
			due := 1_000_000
			earlier := func(idx core.TimeIndex) {
				due--
				require.NoError(e, idx.Add(e.ctx, []core.Entry{{ID: core.ID(e.unique("head")), Due: at(due)}}))
			}
			// A watcher needs a moment to listen, and nothing says when it does.
			if !e.wait(func() bool { earlier(e.peer); return w.calls.Load() > 0 }) {
				e.Errorf("got no notification in %s of heads that another handle added, want one", e.patience)
				e.FailNow()
			}
			for i, idx := range []core.TimeIndex{e.peer, e.idx, e.peer} {
				w.settle(e)
				before := w.calls.Load()
				earlier(idx)
				if !e.wait(func() bool { return w.calls.Load() > before }) {
					e.Errorf("round %d: got no notification of an earlier head, want one", i)
				}
			}
		},
	},
	{
		name: "watch/new-head", needs: "Watcher",
		rule: "The first entry of an empty index is such an entry, and so is a known one that an Add makes the earliest.",
		run: func(e *indexEnv) {
			w := e.watch()
			defer w.stop(e)
			first := core.Entry{ID: "first", Due: at(1_000_000)}
			if !e.wait(func() bool {
				e.add(first)
				heard := w.calls.Load() > 0
				e.remove(first)
				return heard
			}) {
				e.Errorf("got no notification in %s of entries that were each the only one, want one", e.patience)
				e.FailNow()
			}
			e.add(first, core.Entry{ID: "known", Due: at(2_000_000)})
			w.settle(e)
			before := w.calls.Load()
			e.add(core.Entry{ID: "known", Due: base})
			if !e.wait(func() bool { return w.calls.Load() > before }) {
				e.Errorf("got no notification of a known entry that is the earliest now, want one")
			}
		},
	},
	{
		name: "watch/earliest-anywhere", needs: "Watcher",
		rule: "Watch calls notify when any entry of an Add is earlier than all others, wherever in the slice it stands.",
		run: func(e *indexEnv) {
			w := e.watch()
			defer w.stop(e)
			due := 1_000_000
			// add has the earliest entry stand at a place among later ones than the head.
			add := func(place, n int) {
				due--
				entries := make([]core.Entry, n)
				for i := range entries {
					entries[i] = core.Entry{ID: core.ID(e.unique("n")), Due: at(2_000_000 + i)}
				}
				entries[place].Due = at(due)
				require.NoError(e, e.peer.Add(e.ctx, entries), "Add")
			}
			if !e.wait(func() bool { add(0, 1); return w.calls.Load() > 0 }) {
				e.Errorf("got no notification in %s of heads that another handle added, want one", e.patience)
				e.FailNow()
			}
			for _, in := range [][2]int{{0, 3}, {1, 3}, {2, 3}, {300, 600}, {599, 600}} {
				w.settle(e)
				before := w.calls.Load()
				add(in[0], in[1])
				if !e.wait(func() bool { return w.calls.Load() > before }) {
					e.Errorf("got no notification of an Add whose item %d of %d is earlier than all others, want one", in[0], in[1])
					return // the others would each take as long to fail
				}
			}
		},
	},
	{
		name: "watch/ends", needs: "Watcher",
		rule: "Watch blocks until ctx is done and then returns nil or ctx's error.",
		run: func(e *indexEnv) {
			w := e.watch()
			defer w.stop(e)
			e.add(core.Entry{ID: "a", Due: base})
			select {
			case <-w.ended:
				e.Errorf("got a return (%v) before ctx was done, want it to block", w.err)
			case <-time.After(50 * time.Millisecond): // long enough for an eager return to show
			}
			w.stop(e)
			if w.err != nil && !errors.Is(w.err, context.Canceled) {
				e.Errorf("got error %v, want nil or ctx's", w.err)
			}
		},
	},
	{
		name: "watch/done-ctx", needs: "Watcher",
		rule: "With a ctx that is already done Watch returns at once.",
		run: func(e *indexEnv) {
			select {
			case err := <-e.watchOnce(done()):
				if err != nil {
					assert.ErrorIs(e, err, context.Canceled)
				}
			case <-time.After(e.patience):
				e.Errorf("got no return within %s", e.patience)
			}
		},
	},
	{
		name: "watch/joins", needs: "Watcher",
		rule: "Watch has joined every goroutine of its own when it returns.",
		run: func(e *indexEnv) {
			const rounds = 20
			cycle := func() {
				ctx, cancel := context.WithCancel(e.ctx)
				ended := e.watchOnce(ctx)
				runtime.Gosched()
				e.add(core.Entry{ID: core.ID(e.unique("n")), Due: base})
				cancel()
				if err := <-ended; err != nil {
					assert.ErrorIs(e, err, context.Canceled, "Watch after its ctx was done")
				}
			}
			cycle() // a client may start its own goroutines with the first connection
			before := runtime.NumGoroutine()
			for range rounds {
				cycle()
			}
			// Half of them as slack: what a driver keeps is no goroutine of Watch.
			if !e.wait(func() bool { return runtime.NumGoroutine() < before+rounds/2 }) {
				buf := make([]byte, 64<<10)
				e.Errorf("got %d goroutines after %d rounds of Watch, %d before them\n%s",
					runtime.NumGoroutine(), rounds, before, buf[:runtime.Stack(buf, true)])
			}
		},
	},
	{
		name: "watch/many", needs: "Watcher",
		rule: "Any number of Watches run at once; the end of one leaves the others listening.",
		run: func(e *indexEnv) {
			a, b := e.watch(), e.watch()
			defer a.stop(e)
			defer b.stop(e)
			due := 1_000_000
			heard := func(w *watching) bool {
				due--
				e.add(core.Entry{ID: core.ID(e.unique("head")), Due: at(due)})
				return w.calls.Load() > 0
			}
			assert.True(e, e.wait(func() bool { return heard(a) }) && e.wait(func() bool { return heard(b) }), "both hear of new heads")
			a.settle(e)
			b.settle(e)
			a.calls.Store(0)
			b.calls.Store(0)
			heard(a)
			assert.True(e, e.wait(func() bool { return a.calls.Load() > 0 && b.calls.Load() > 0 }), "both hear of the same new head")
			a.stop(e)
			b.settle(e)
			b.calls.Store(0)
			assert.True(e, e.wait(func() bool { return heard(b) }), "the second hears on after the first ended")
		},
	},
}

// watching is a Watch that runs in the background.
type watching struct {
	calls  atomic.Int64
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // what Watch returned, once ended is closed
}

func (e *indexEnv) watch() *watching {
	ctx, cancel := context.WithCancel(e.ctx)
	w := &watching{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		e.guard(func() { w.err = e.idx.(core.Watcher).Watch(ctx, func() { w.calls.Add(1) }) })
	}()
	return w
}

// watchOnce runs a Watch that nobody listens to and delivers what it returns.
func (e *indexEnv) watchOnce(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		e.guard(func() { ended <- e.idx.(core.Watcher).Watch(ctx, func() {}) })
	}()
	return ended
}

// stop ends the Watch and waits for its return.
func (w *watching) stop(e *indexEnv) {
	w.cancel()
	select {
	case <-w.ended:
	case <-time.After(e.patience):
		e.Errorf("got no return of Watch within %s of ctx's end", e.patience)
		e.FailNow()
	}
}

// settle waits until no notification came for a while, so that a late one of an
// earlier entry isn't taken for that of the next.
func (w *watching) settle(e *indexEnv) {
	for seen := w.calls.Load(); ; {
		time.Sleep(20 * time.Millisecond) // there is no event for "nothing more comes"
		now := w.calls.Load()
		if now == seen || e.ctx.Err() != nil {
			return
		}
		seen = now
	}
}

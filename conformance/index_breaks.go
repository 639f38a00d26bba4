package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

// attempts are all methods of an index, on an entry "a" at base: Add puts "new",
// and after them all "a" is gone, whatever order they came in.
func (e *indexEnv) attempts() []attempt {
	list := []attempt{
		{"Add", func(ctx context.Context) error { return e.idx.Add(ctx, []core.Entry{{ID: "new", Due: at(5)}}) }},
		{"Due", func(ctx context.Context) error { _, err := e.idx.Due(ctx, endOfTime, 10); return err }},
		{"Move", func(ctx context.Context) error {
			return e.idx.Move(ctx, []core.Move{{ID: "a", From: base, To: at(1)}})
		}},
		{"Remove", func(ctx context.Context) error { return e.idx.Remove(ctx, []core.Entry{{ID: "a", Due: at(1)}}) }},
	}
	if taker, ok := e.idx.(core.Taker); ok {
		list = append(list, attempt{"Take", func(ctx context.Context) error {
			_, _, err := taker.Take(ctx, base.Add(-time.Hour), base, 10) // nothing is due by then
			return err
		}})
	}
	if restorer, ok := e.idx.(core.Restorer); ok {
		list = append(list, attempt{"AddMissing", func(ctx context.Context) error {
			return restorer.AddMissing(ctx, []core.Entry{{ID: "new", Due: at(5)}}) // as Add did
		}})
	}
	if lister, ok := e.idx.(core.Lister); ok && e.provides.Lister {
		list = append(list, attempt{"List", func(ctx context.Context) error { _, err := lister.List(ctx, core.Entry{}, endOfTime, 10); return err }})
	}
	if detector, ok := e.idx.(core.Detector); ok && e.provides.Detector {
		list = append(list, attempt{"Generation", func(ctx context.Context) error { _, err := detector.Generation(ctx); return err }})
	}
	return list
}

// longAttempts are writes of so many items that an adapter may cut them or send
// them another way; after all of them, in their order, none of the items is there.
func (e *indexEnv) longAttempts() []attempt {
	ids := manyIDs("long", 1001)
	moves := make([]core.Move, len(ids))
	for i, id := range ids {
		moves[i] = core.Move{ID: id, From: at(7), To: at(8)}
	}
	var list []attempt
	if restorer, ok := e.idx.(core.Restorer); ok {
		list = append(list, attempt{"AddMissing of 1,001", func(ctx context.Context) error {
			return restorer.AddMissing(ctx, standing(ids, at(7)))
		}})
	}
	return append(list, []attempt{
		{"Add of 1,001", func(ctx context.Context) error { return e.idx.Add(ctx, standing(ids, at(7))) }},
		{"Move of 1,001", func(ctx context.Context) error { return e.idx.Move(ctx, moves) }},
		{"Remove of 1,001", func(ctx context.Context) error { return e.idx.Remove(ctx, standing(ids, at(8))) }},
	}...)
}

// back waits until the handle works again after heal.
func (e *indexEnv) back() {
	if !e.wait(func() bool { _, err := e.idx.Due(e.ctx, base, 1); return err == nil }) {
		_, err := e.idx.Due(e.ctx, base, 1)
		e.Errorf("got error %v long after the backend was back, want the handle to work again by itself", err)
		e.FailNow()
	}
}

var indexBreaks = []testCase[*indexEnv]{
	{
		name: "break/errors", needs: "Break",
		rule: "While its backend is away each method returns an error soon; then the same handle works again, nothing that was stored is lost, and a repeat of what failed is harmless.",
		run: func(e *indexEnv) {
			kept := core.Entry{ID: "kept", Due: at(3)}
			e.add(kept)
			for round := range 2 {
				attempts := e.attempts()
				if round == 0 { // they may take a while to fail
					attempts = append(attempts, e.longAttempts()...)
				}
				e.add(core.Entry{ID: "a", Due: base})
				heal := e.breakIt()
				e.wantErrors(attempts)
				heal()
				e.back()
				e.wantSuccess(attempts)
				if !e.wait(func() bool { _, err := e.peer.Due(e.ctx, base, 1); return err == nil }) {
					e.Errorf("another handle doesn't work after the backend was back")
				}
				e.wantAll("after all was repeated", kept, core.Entry{ID: "new", Due: at(5)})
			}
		},
	},
	{
		name: "break/deadline", needs: "Break",
		rule: "Also while its backend is away a method returns soon after ctx is done.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: base})
			heal := e.breakIt()
			defer heal()
			e.wantInTime(e.attempts())
		},
	},
	{
		name: "break/midway", needs: "Break",
		rule: "What was under way when the backend failed is repeated with the same arguments and is then as if nothing had happened.",
		run: func(e *indexEnv) {
			const workers, each = 4, 40
			failed := make(chan struct{}, workers*each*3*200)
			var wg sync.WaitGroup
			insist := func(call func() error) error {
				return e.insist(func() error {
					err := call()
					if err != nil {
						failed <- struct{}{}
					}
					return err
				})
			}
			begun := make(chan struct{}, workers*each)
			for w := range workers {
				e.spawn(&wg, func() {
					for i, id := range manyIDs(string(rune('a'+w)), each) {
						assert.NoError(e, insist(func() error { return e.idx.Add(e.ctx, []core.Entry{{ID: id, Due: at(i)}}) }), "Add")
						assert.NoError(e, insist(func() error {
							return e.idx.Move(e.ctx, []core.Move{{ID: id, From: at(i), To: at(1000 + i)}})
						}), "Move")
						if i%2 == 0 {
							assert.NoError(e, insist(func() error { return e.idx.Remove(e.ctx, []core.Entry{{ID: id, Due: at(1000 + i)}}) }), "Remove")
						}
						begun <- struct{}{}
					}
				})
			}
			for range workers * each / 4 {
				<-begun
			}
			heal := e.breakIt()
			over := make(chan struct{})
			go func() {
				defer close(over)
				wg.Wait()
			}()
			select {
			case <-failed: // somebody noticed
			case <-over: // too quick to notice
			case <-time.After(e.patience):
			}
			heal()
			<-over
			e.back()
			var got []core.Entry
			assert.NoError(e, e.insist(func() (err error) { got, err = e.peer.Due(e.ctx, endOfTime, 1000); return err }))
			assert.Len(e, got, workers*each/2, "entries that were not removed")
			for _, entry := range got {
				assert.False(e, entry.Due.Before(at(1000)), "%q stands at %s, want it moved", entry.ID, stamp(entry.Due))
			}
		},
	},
	{
		name: "break/watch", needs: "Break Watcher",
		rule: "When its backend fails Watch returns an error or goes on; called again, where it returned, it hears of earlier heads again once the backend is back.",
		run: func(e *indexEnv) {
			watcher := e.idx.(core.Watcher)
			w := &watching{ended: make(chan struct{})}
			ctx, cancel := context.WithCancel(e.ctx)
			w.cancel = cancel
			again := func() {
				for ctx.Err() == nil {
					err := watcher.Watch(ctx, func() { w.calls.Add(1) })
					if err == nil && ctx.Err() == nil {
						e.Errorf("Watch returned nil before its ctx was done, want an error")
						return
					}
					time.Sleep(10 * time.Millisecond) // core backs off before it calls again
				}
			}
			go func() {
				defer close(w.ended)
				e.guard(again)
			}()
			defer w.stop(e)
			due := 1_000_000
			heard := func() bool {
				before := w.calls.Load()
				return e.wait(func() bool {
					due--
					// An Add whose outcome is unknown is one of those that may go unheard.
					_ = e.idx.Add(e.ctx, []core.Entry{{ID: core.ID(e.unique("head")), Due: at(due)}})
					return w.calls.Load() > before
				})
			}
			assert.True(e, heard(), "a notification before the backend failed")
			for range 2 {
				heal := e.breakIt()
				_ = e.idx.Add(e.ctx, []core.Entry{{ID: "lost", Due: at(2_000_000)}})
				heal()
				e.back()
				w.settle(e)
				assert.True(e, heard(), "a notification after the backend was back")
			}
		},
	},
}

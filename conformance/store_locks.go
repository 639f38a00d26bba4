package conformance

import (
	"context"
	"errors"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeLocks = []testCase[*storeEnv]{
	{
		name: "lock/store", needs: "Lock",
		rule: "Insert, Cancel, Reschedule and Purge never wait for a locked row beyond ctx, and leave it as it was or say so.",
		run: func(e *storeEnv) {
			e.insert(task("locked", at(5)))
			unlock := e.lock("locked")
			_ = e.within(func(ctx context.Context) error {
				return e.s.Insert(ctx, e.call(base), []core.Task{task("locked", base)})
			})
			_ = e.within(func(ctx context.Context) error {
				return e.s.Reschedule(ctx, core.Call{Now: base}, []core.Move{{ID: "locked", From: at(5), To: at(9)}})
			})
			if purger, ok := e.s.(core.Purger); ok {
				_ = e.within(func(ctx context.Context) error {
					_, err := purger.Purge(ctx, base, 10)
					return err
				})
			}
			cancelled := false
			_ = e.within(func(ctx context.Context) error {
				_, err := e.s.Cancel(ctx, core.Call{Now: base}, []core.ID{"locked"})
				cancelled = err == nil
				return err
			})
			unlock()
			if cancelled {
				e.Errorf("got no error of a Cancel that the lock must have stopped")
			}
			e.wantWaiting(base, "after the lock was gone", core.Entry{ID: "locked", Due: at(5)})
			var fates []core.Fate
			require.NoError(e, e.insistFree(func() (err error) { // the Insert given up may have it for a moment yet
				fates, err = e.s.Cancel(e.ctx, core.Call{Now: base}, []core.ID{"locked"})
				return err
			}), "Cancel after the lock was gone")
			assert.Equal(e, []core.Fate{core.Cancelled}, fates, "fate after the lock was gone")
		},
	},
	{
		name: "lock/finished", needs: "Lock",
		rule: "An Insert that would replace a finished task whose row is locked waits no longer than ctx and leaves it as it was or says so; its repeat replaces it once.",
		run: func(e *storeEnv) {
			e.finish("dead", "dead")
			unlock := e.lock("dead")
			call, list := e.call(at(5)), tasks([]core.ID{"dead", "other"}, at(6))
			err := e.within(func(ctx context.Context) error { return e.s.Insert(ctx, call, list) })
			unlock()
			if err == nil {
				e.Errorf("got no error of an Insert that the lock must have stopped")
			} else if errors.Is(err, core.ErrExists) {
				e.Errorf("got error %v for an id whose task is dead, want one that says that it is locked, or that ctx ended", err)
			}
			require.NoError(e, e.insistFree(func() error { return e.s.Insert(e.ctx, call, list) }), "repeated after the lock was gone")
			e.wantWaiting(base, "after the repeat", core.Entry{ID: "dead", Due: at(6)}, core.Entry{ID: "other", Due: at(6)})
			assert.Equal(e, 1, e.grant(e.lease(at(6)), "dead").Attempt, "Attempt")
		},
	},
}

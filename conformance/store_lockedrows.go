package conformance

import (
	"context"
	"errors"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeLockedRows = []testCase[*storeEnv]{
	{
		name: "lock/purge", needs: "Lock Purger KeepsFinished",
		rule: "One locked row never holds up a Purge: the others are deleted, and it is by the next one after the lock.",
		run: func(e *storeEnv) {
			ids := []core.ID{"a", "locked", "z"}
			e.insert(tasks(ids, base)...)
			e.cancel(e.s, at(1), ids...)
			unlock := e.lock("locked")
			purge := func(about string, want int) {
				n := 0
				require.NoError(e, e.unhindered(func(ctx context.Context) (err error) {
					n, err = e.s.(core.Purger).Purge(ctx, at(2), 10)
					return err
				}), "Purge "+about)
				assert.Equal(e, want, n, "rows purged "+about)
			}
			purge("beside a locked row", 2)
			unlock()
			purge("after the lock was gone", 1)
			e.wantFates(at(3), "in the end", ids, core.Unknown, core.Unknown, core.Unknown)
		},
	},
	{
		name: "lock/finished-of-many", needs: "Lock",
		rule: "An Insert over finished tasks one of whose rows is locked names exactly that one and replaces the others, or fails as a whole; its repeat replaces what is left, each once.",
		run: func(e *storeEnv) {
			ids := []core.ID{"a", "locked", "z"}
			e.insert(tasks(ids, base)...)
			var settlements []core.Settlement
			for _, c := range e.grantAll(e.lease(base), ids...) {
				settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.DeadLetter})
			}
			e.settle(at(1), settlements...)
			unlock := e.lock("locked")
			call, list := e.call(at(5)), tasks(ids, at(6))
			err := e.within(func(ctx context.Context) error { return e.s.Insert(ctx, call, list) })
			var batch *core.BatchError
			if errors.As(err, &batch) {
				e.wantRefusals(err, []refusal{{1, "locked", core.ErrBusy}}, "Insert")
				e.wantWaiting(base, "beside a locked row", core.Entry{ID: "a", Due: at(6)}, core.Entry{ID: "z", Due: at(6)})
			} else if err == nil {
				e.Errorf("got no error of an Insert that the lock must have stopped")
			}
			unlock()
			require.NoError(e, e.insistFree(func() error { return e.s.Insert(e.ctx, call, list) }), "repeated after the lock was gone")
			e.wantWaiting(base, "after the repeat", core.Entry{ID: "a", Due: at(6)}, core.Entry{ID: "locked", Due: at(6)}, core.Entry{ID: "z", Due: at(6)})
			for _, c := range e.grantAll(e.lease(at(6)), ids...) {
				assert.Equal(e, 1, c.Attempt, "Attempt of %q", c.ID)
			}
		},
	},
}

package conformance

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (e *storeEnv) purge(before time.Time, limit int) int {
	n, err := e.s.(core.Purger).Purge(e.ctx, before, limit)
	require.NoError(e, err, "Purge")
	return n
}

// purgeAll purges all that a case may have finished.
func (e *storeEnv) purgeAll() int { return e.purge(base.Add(time.Hour), 1000) }

var storePurges = []testCase[*storeEnv]{
	{
		name: "purge/what", needs: "Purger",
		rule: "Purge deletes done and cancelled rows and returns how many; dead, pending and running ones stay.",
		run: func(e *storeEnv) {
			e.finish("done", "done")
			e.finish("dead", "dead")
			e.finish("cancelled", "cancelled")
			e.insert(task("pending", base), task("running", base), task("lapsed", base))
			running := e.grant(e.lease(base), "running")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: base}, "lapsed")
			want := map[bool]int{true: 2, false: 0}[e.provides.KeepsFinished]
			assert.Equal(e, want, e.purgeAll(), "rows purged")
			assert.Equal(e, 0, e.purgeAll(), "rows purged by a repeat")
			e.settle(at(5), core.Settlement{Grant: running.Grant, Outcome: core.Retry, Due: at(6)})
			e.wantWaiting(at(7), "after the purge", core.Entry{ID: "lapsed", Due: base}, core.Entry{ID: "pending", Due: base}, core.Entry{ID: "running", Due: at(6)})
			e.wantFates(at(7), "after the purge", []core.ID{"done", "dead", "cancelled", "pending"},
				core.Unknown, core.Finished, core.Unknown, core.Cancelled)
		},
	},
	{
		name: "purge/before", needs: "Purger",
		rule: "Purge deletes rows that were finished before the bound, by the now of the Settle or Cancel that finished them, and none at it.",
		run: func(e *storeEnv) {
			if !e.provides.KeepsFinished {
				assert.Equal(e, 0, e.purgeAll(), "nothing is kept")
				return
			}
			ids := []core.ID{"d1", "d2", "c1", "c2"}
			e.insert(tasks(ids, base)...)
			got := e.grantAll(e.lease(base), "d1", "d2")
			e.settle(at(100), core.Settlement{Grant: got[0].Grant, Outcome: core.Done})
			e.settle(at(200), core.Settlement{Grant: got[1].Grant, Outcome: core.Done})
			e.cancel(e.s, at(100), "c1")
			e.cancel(e.s, at(200), "c2")
			assert.Equal(e, 0, e.purge(at(100), 10), "before 100 ms")
			assert.Equal(e, 2, e.purge(at(101), 10), "before 101 ms")
			e.wantFates(at(300), "after the first purge", ids, core.Unknown, core.Finished, core.Unknown, core.Cancelled)
			assert.Equal(e, 0, e.purge(at(200), 10), "before 200 ms")
			assert.Equal(e, 2, e.purge(at(201), 10), "before 201 ms")
		},
	},
	{
		name: "purge/limit", needs: "Purger",
		rule: "Purge deletes up to limit rows.",
		run: func(e *storeEnv) {
			if !e.provides.KeepsFinished {
				assert.Equal(e, 0, e.purge(base.Add(time.Hour), 3), "nothing is kept")
				return
			}
			ids := manyIDs("n", 10)
			e.insert(tasks(ids, base)...)
			e.cancel(e.s, at(1), ids...)
			for i, want := range []int{4, 4, 2, 0} {
				assert.Equal(e, want, e.purge(at(2), 4), "rows deleted by purge %d of limit 4", i+1)
			}
		},
	},
	{
		name: "purge/then-reuse", needs: "Purger",
		rule: "A purged id may be used again, with a higher token; a grant from before is worth nothing on it.",
		run: func(e *storeEnv) {
			old := e.finish("a", "done")
			e.purgeAll()
			require.NoError(e, e.s.Insert(e.ctx, e.call(base.Add(time.Hour)), []core.Task{task("a", base)}))
			want := []refusal{{0, "a", core.ErrLeaseLost}}
			e.wantRefusals(e.c.Settle(e.ctx, at(5), []core.Settlement{{Grant: old, Outcome: core.Done}}), want, "the old grant's Settle")
			c := e.grant(e.lease(base), "a")
			assert.Greater(e, c.Grant.Token, old.Token, "Token")
			assert.Equal(e, 1, c.Attempt, "Attempt")
			e.wantRefusals(e.c.Extend(e.ctx, []core.Grant{old}, at(99_000)), want, "the old grant's Extend")
		},
	},
	{
		name: "purge/replaced", needs: "Purger",
		rule: "Purge never deletes a live task that has replaced a finished one.",
		run: func(e *storeEnv) {
			e.finish("a", "done")
			e.finish("b", "cancelled")
			e.insert(task("a", at(5)), task("b", at(5)))
			assert.Equal(e, 0, e.purgeAll(), "rows purged")
			e.wantWaiting(base, "both are pending", core.Entry{ID: "a", Due: at(5)}, core.Entry{ID: "b", Due: at(5)})
		},
	},
	{
		name: "purge/done-ctx", needs: "Purger",
		rule: "With a ctx that is already done Purge returns its error and does nothing.",
		run: func(e *storeEnv) {
			e.finish("a", "done")
			_, err := e.s.(core.Purger).Purge(done(), base.Add(time.Hour), 10)
			assert.ErrorIs(e, err, context.Canceled, "Purge")
			want := map[bool]int{true: 1, false: 0}[e.provides.KeepsFinished]
			assert.Equal(e, want, e.purgeAll(), "rows that were left")
		},
	},
}

package conformance

import (
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What became of a task between a call and its repeat.
var storeRepeats = []testCase[*storeEnv]{
	{
		name: "claim/repeat-cancelled",
		rule: "A repeat of a Claim on a task that was cancelled since is answered Gone.",
		run: func(e *storeEnv) {
			e.insert(task("a", base), task("b", base))
			lease := e.lease(base)
			e.grantAll(lease, "a", "b")
			e.wantFates(at(1), "while it runs", []core.ID{"a"}, core.WasRunning)
			got := e.claim(e.peer, lease, "a", "b")
			e.wantVerdict(got[0], core.Gone, time.Time{}, "cancelled since")
			e.wantVerdict(got[1], core.Granted, lease.Until, "still its holder's")
		},
	},
	{
		name: "settle/repeat-after-reschedule",
		rule: "A repeat of a Settle never undoes a Reschedule that came in between.",
		run: func(e *storeEnv) {
			for _, outcome := range []core.Outcome{core.Retry, core.Released} {
				id := core.ID(outcome.String())
				e.insert(task(id, base))
				s := core.Settlement{Grant: e.grant(e.lease(base), id).Grant, Outcome: outcome, Due: at(5)}
				e.settle(at(1), s)
				require.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: at(2)}, []core.Move{{ID: id, From: at(5), To: at(50)}}))
				// Whether it is refused is the store's choice; that it changes nothing is not.
				_ = e.c.Settle(e.ctx, at(3), []core.Settlement{s})
				e.wantVerdict(e.claim(e.c, e.lease(at(49)), id)[0], core.NotDue, at(50), "rescheduled before the repeat of "+outcome.String())
				e.settle(at(50), core.Settlement{Grant: e.grant(e.lease(at(50)), id).Grant, Outcome: core.Done})
			}
		},
	},
	{
		name: "cancel/repeat-after-reuse",
		rule: "A late repeat of a Settle or Extend never touches the task that came after a cancelled one under the same id.",
		run: func(e *storeEnv) {
			e.insert(task("a", base))
			old := e.grant(e.lease(base), "a").Grant
			e.cancel(e.s, at(1), "a")
			require.NoError(e, e.s.Insert(e.ctx, e.call(at(2)), []core.Task{task("a", at(7))}))
			for range 2 {
				e.wantRefusals(e.c.Settle(e.ctx, at(3), []core.Settlement{{Grant: old, Outcome: core.Done}}), []refusal{{0, "a", core.ErrLeaseLost}}, "Settle")
			}
			e.wantWaiting(at(3), "the new one", core.Entry{ID: "a", Due: at(7)})
		},
	},
	{
		name: "insert/repeat-purged", needs: "Purger",
		rule: "Once a finished row is purged a repeat of its Insert can't be recognised: it is a new task, with a token above the old one's.",
		run: func(e *storeEnv) {
			call, list := e.call(at(1)), tasks([]core.ID{"a"}, base)
			require.NoError(e, e.s.Insert(e.ctx, call, list))
			old := e.grant(e.lease(base), "a").Grant
			e.settle(at(2), core.Settlement{Grant: old, Outcome: core.Done})
			e.purgeAll()
			require.NoError(e, e.s.Insert(e.ctx, call, list), "the repeat")
			c := e.grant(e.lease(base), "a")
			assert.Greater(e, c.Grant.Token, old.Token, "Token")
			assert.Equal(e, 1, c.Attempt, "Attempt")
		},
	},
	{
		name: "insert/call-id-limits",
		rule: "A Call.ID is 1 to 64 bytes of printable ASCII, stored and compared byte for byte.",
		run: func(e *storeEnv) {
			long := strings.Repeat("x", core.MaxCallBytes-1)
			calls := []string{"x", "X", long + "a", long + "b", `'"\%_` + "`$1?:a{}[]()*;--", `\`, `'`, "null", "0", "00"}
			for i, id := range calls {
				list := []core.Task{task(manyIDs("n", len(calls))[i], base)}
				require.NoError(e, e.s.Insert(e.ctx, core.Call{ID: id, Now: base}, list), "call %q", id)
				for _, other := range calls {
					err := e.peerStore.Insert(e.ctx, core.Call{ID: other, Now: at(1)}, list)
					if other == id {
						require.NoError(e, err, "a repeat of call %q", id)
					} else {
						e.wantRefusals(err, []refusal{{0, list[0].ID, core.ErrExists}}, "call "+other+" for what "+id+" stored")
					}
				}
			}
			assert.Len(e, e.waiting(base), len(calls))
		},
	},
	{
		name: "reschedule/ids-bytes",
		rule: "Reschedule touches the task with exactly these bytes and no other.",
		run: func(e *storeEnv) {
			e.insert(tasks(awkwardIDs, base)...)
			due := map[core.ID]time.Time{}
			var moves []core.Move
			for i, id := range awkwardIDs {
				due[id] = base
				if i%2 == 1 {
					due[id] = at(i)
					moves = append(moves, core.Move{ID: id, From: base, To: at(i)})
				}
			}
			require.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: base}, moves))
			got := e.waiting(base)
			assert.Len(e, got, len(awkwardIDs), "rows that wait")
			for _, entry := range got {
				e.wantTime(due[entry.ID], entry.Due, "due time of %q", entry.ID)
			}
			for _, id := range []core.ID{"none", "S", "Null", "á ", "À"} {
				e.wantRefusals(e.reschedule(core.Move{ID: id, To: at(1)}), []refusal{{0, id, core.ErrNotPending}}, "an id that was never there")
			}
		},
	},
}

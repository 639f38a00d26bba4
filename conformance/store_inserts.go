package conformance

import (
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeInserts = []testCase[*storeEnv]{
	{
		name: "insert/pending",
		rule: "Insert stores tasks as pending: they wait from their due time on, on every handle.",
		run: func(e *storeEnv) {
			e.insert(task("a", at(10)), task("b", base))
			e.wantWaiting(base, "inserted", core.Entry{ID: "b", Due: base}, core.Entry{ID: "a", Due: at(10)})
			e.wantVerdict(e.claim(e.peer, e.lease(at(9)), "a")[0], core.NotDue, at(10), "before its time")
			lease := e.lease(at(10))
			e.wantVerdict(e.claim(e.peer, lease, "a")[0], core.Granted, lease.Until, "at its time")
		},
	},
	{
		name: "insert/exists",
		rule: "An id whose task is live fails with ErrExists, in its place; that task is left as it is and all others are stored.",
		run: func(e *storeEnv) {
			e.insert(task("pending", at(10)), task("running", base), task("lapsed", base), task("retried", base))
			running := e.grant(e.lease(base), "running")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(1)}, "lapsed")
			e.settle(base, core.Settlement{Grant: e.grant(e.lease(base), "retried").Grant, Outcome: core.Retry, Due: at(20)})
			var list []core.Task
			for _, id := range []core.ID{"new1", "running", "lapsed", "new2", "pending", "retried", "new3"} {
				other := task(id, at(5))
				other.Payload = []byte("other")
				list = append(list, other)
			}
			e.wantRefusals(e.s.Insert(e.ctx, e.call(at(100)), list), []refusal{
				{1, "running", core.ErrExists}, {2, "lapsed", core.ErrExists}, {4, "pending", core.ErrExists}, {5, "retried", core.ErrExists},
			}, "Insert of three new ones and four live ones")
			e.wantWaiting(at(100), "new ones beside old ones",
				core.Entry{ID: "lapsed", Due: base},
				core.Entry{ID: "new1", Due: at(5)}, core.Entry{ID: "new2", Due: at(5)}, core.Entry{ID: "new3", Due: at(5)},
				core.Entry{ID: "pending", Due: at(10)}, core.Entry{ID: "retried", Due: at(20)})
			assert.Equal(e, "payload of pending", string(e.grant(e.lease(at(100)), "pending").Task.Payload), "payload of the live one")
			e.settle(at(101), core.Settlement{Grant: running.Grant, Outcome: core.Done})
		},
	},
	{
		name: "insert/one-bad-of-many",
		rule: "One item of a long batch that fails is named by its place; all others are stored.",
		run: func(e *storeEnv) {
			ids := manyIDs("n", e.scale(1001, 301))
			odd := len(ids) * 7 / 10
			e.insert(task(ids[odd], base))
			e.wantRefusals(e.s.Insert(e.ctx, e.call(base), tasks(ids, base)), []refusal{{odd, ids[odd], core.ErrExists}}, "Insert of many")
			assert.Len(e, e.waiting(base), len(ids), "stored")
		},
	},
}

var storeInsertRepeats = []testCase[*storeEnv]{
	{
		name: "insert/repeat-live",
		rule: "A repeat with the same call.ID recognises its own earlier success on live tasks, whatever became of them since, and succeeds without a change.",
		run: func(e *storeEnv) {
			ids := []core.ID{"pending", "moved", "running", "lapsed", "retried", "released"}
			list := tasks(ids, base)
			call := e.insert(list...)
			require.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: base}, []core.Move{{ID: "moved", To: at(5)}}))
			running := e.grant(e.lease(base), "running")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(1)}, "lapsed")
			got := e.grantAll(e.lease(base), "retried", "released")
			e.settle(at(1), core.Settlement{Grant: got[0].Grant, Outcome: core.Retry, Due: at(20)}, core.Settlement{Grant: got[1].Grant, Outcome: core.Released, Due: at(30)})
			for _, s := range []core.Store{e.s, e.peerStore, e.s} {
				require.NoError(e, s.Insert(e.ctx, call, list), "the repeat")
			}
			e.wantWaiting(at(50), "after three repeats",
				core.Entry{ID: "lapsed", Due: base}, core.Entry{ID: "pending", Due: base}, core.Entry{ID: "moved", Due: at(5)},
				core.Entry{ID: "retried", Due: at(20)}, core.Entry{ID: "released", Due: at(30)})
			for id, attempt := range map[core.ID]int{"pending": 1, "lapsed": 2, "retried": 2, "released": 1} {
				assert.Equal(e, attempt, e.grant(e.lease(at(50)), id).Attempt, "Attempt of %q", id)
			}
			e.settle(at(51), core.Settlement{Grant: running.Grant, Outcome: core.Done})
		},
	},
	{
		name: "insert/repeat-finished", needs: "KeepsFinished",
		rule: "A repeat with the same call.ID recognises its own earlier success also on tasks that are finished and still there, and succeeds without a change.",
		run: func(e *storeEnv) {
			ids := []core.ID{"done", "dead", "cancelled", "pending"}
			list := tasks(ids, base)
			call := e.insert(list...)
			got := e.grantAll(e.lease(base), "done", "dead")
			e.settle(at(1), core.Settlement{Grant: got[0].Grant, Outcome: core.Done}, core.Settlement{Grant: got[1].Grant, Outcome: core.DeadLetter})
			e.cancel(e.s, at(1), "cancelled")
			for range 2 {
				require.NoError(e, e.s.Insert(e.ctx, call, list), "the repeat")
			}
			e.wantWaiting(at(50), "after the repeats", core.Entry{ID: "pending", Due: base})
			fates := e.cancel(e.s, at(2), ids...)
			assert.Equal(e, []core.Fate{core.Finished, core.Finished, core.Cancelled, core.Cancelled}, fates, "fates after the repeats")
		},
	},
	{
		name: "insert/repeat-dead", needs: "!KeepsFinished",
		rule: "Dead tasks are kept also where done ones are deleted: a repeat with the same call.ID recognises them.",
		run: func(e *storeEnv) {
			list := tasks([]core.ID{"dead"}, base)
			call := e.insert(list...)
			e.settle(at(1), core.Settlement{Grant: e.grant(e.lease(base), "dead").Grant, Outcome: core.DeadLetter})
			require.NoError(e, e.s.Insert(e.ctx, call, list), "the repeat")
			e.wantWaiting(at(50), "after the repeat")
		},
	},
	{
		name: "insert/repeat-partial",
		rule: "A repeat of a call that took effect in part stores what is missing, and fails again for what it failed for.",
		run: func(e *storeEnv) {
			e.insert(task("live", base))
			call := e.call(at(1))
			list := tasks([]core.ID{"a", "live", "b", "c"}, at(2))
			want := []refusal{{1, "live", core.ErrExists}}
			e.wantRefusals(e.s.Insert(e.ctx, call, list[:3]), want, "the first try, which got as far as b")
			c := e.grant(e.lease(at(2)), "a")
			e.wantRefusals(e.s.Insert(e.ctx, call, list), want, "the repeat")
			e.wantWaiting(at(2), "after the repeat", core.Entry{ID: "live", Due: base}, core.Entry{ID: "b", Due: at(2)}, core.Entry{ID: "c", Due: at(2)})
			e.settle(at(3), core.Settlement{Grant: c.Grant, Outcome: core.Done})
		},
	},
	{
		name: "insert/call-id-bytes",
		rule: "Two Call.IDs that differ in a byte are two calls.",
		run: func(e *storeEnv) {
			call := core.Call{ID: "Call-a", Now: base}
			require.NoError(e, e.s.Insert(e.ctx, call, []core.Task{task("a", base)}))
			for _, id := range []string{"call-a", "Call-A", "Call-a.", "Call-b", "x"} {
				e.wantRefusals(e.s.Insert(e.ctx, core.Call{ID: id, Now: base}, []core.Task{task("a", base)}), []refusal{{0, "a", core.ErrExists}}, "call "+id)
			}
		},
	},
}

package conformance

import (
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (e *storeEnv) reschedule(moves ...core.Move) error {
	return e.s.Reschedule(e.ctx, core.Call{Now: at(1)}, moves)
}

var storeReschedules = []testCase[*storeEnv]{
	{
		name: "reschedule/sets-due",
		rule: "Reschedule sets the due time of a pending task, earlier or later, also as the Task.Due that its holder sees.",
		run: func(e *storeEnv) {
			e.insert(task("later", at(100)), task("earlier", at(100)), task("other", at(100)))
			require.NoError(e, e.reschedule(core.Move{ID: "later", From: at(100), To: at(200)}, core.Move{ID: "earlier", From: at(100), To: at(50)}))
			e.wantWaiting(base, "rescheduled", core.Entry{ID: "earlier", Due: at(50)}, core.Entry{ID: "other", Due: at(100)}, core.Entry{ID: "later", Due: at(200)})
			got := e.claim(e.c, e.lease(at(199)), "earlier", "later")
			e.wantVerdict(got[0], core.Granted, at(199).Add(leaseFor), "earlier")
			e.wantVerdict(got[1], core.NotDue, at(200), "later")
			e.wantTime(at(50), got[0].Task.Due, "Task.Due of earlier")
			e.wantTime(at(200), e.grant(e.lease(at(200)), "later").Task.Due, "Task.Due of later")
		},
	},
	{
		name: "reschedule/any-from",
		rule: "A zero From stands for any due time.",
		run: func(e *storeEnv) {
			e.insert(task("a", at(100)))
			require.NoError(e, e.reschedule(core.Move{ID: "a", To: at(300)}))
			e.wantWaiting(base, "rescheduled", core.Entry{ID: "a", Due: at(300)})
		},
	},
	{
		name: "reschedule/moved",
		rule: "A task whose due time is not From fails with ErrMoved and stays where it is.",
		run: func(e *storeEnv) {
			e.insert(task("a", at(100)), task("b", at(100)))
			e.wantRefusals(e.reschedule(core.Move{ID: "a", From: at(99), To: at(300)}), []refusal{{0, "a", core.ErrMoved}}, "a millisecond off")
			// The first millisecond of 1970 is a time like any other, not "any".
			e.wantRefusals(e.reschedule(core.Move{ID: "a", From: instants[0], To: at(300)}), []refusal{{0, "a", core.ErrMoved}}, "From 1970")
			e.wantWaiting(base, "left alone", core.Entry{ID: "a", Due: at(100)}, core.Entry{ID: "b", Due: at(100)})
		},
	},
	{
		name: "reschedule/already-there",
		rule: "A task that already is at To is a success, whatever From says; so a repeat is harmless.",
		run: func(e *storeEnv) {
			e.insert(task("a", at(100)))
			for range 3 {
				require.NoError(e, e.reschedule(core.Move{ID: "a", From: at(100), To: at(300)}), "repeated")
			}
			require.NoError(e, e.reschedule(core.Move{ID: "a", To: at(300)}), "From zero")
			require.NoError(e, e.reschedule(core.Move{ID: "a", From: at(300), To: at(300)}), "From where it is")
			e.wantWaiting(base, "once moved", core.Entry{ID: "a", Due: at(300)})
		},
	},
	{
		name: "reschedule/not-pending",
		rule: "A task that is running (its lease over or not), finished, cancelled or unknown fails with ErrNotPending and stays as it is.",
		run: func(e *storeEnv) {
			ids := []core.ID{"running", "lapsed", "done", "dead", "cancelled", "unknown"}
			for _, end := range ends {
				e.finish(core.ID(end), end)
			}
			e.insert(task("running", base), task("lapsed", base))
			running := e.grant(e.lease(base), "running")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: base}, "lapsed")
			for _, from := range []time.Time{{}, base} {
				var moves []core.Move
				var want []refusal
				for i, id := range ids {
					moves = append(moves, core.Move{ID: id, From: from, To: at(500)})
					want = append(want, refusal{i, id, core.ErrNotPending})
				}
				e.wantRefusals(e.reschedule(moves...), want, "From "+stamp(from))
			}
			e.wantRefusals(e.reschedule(core.Move{ID: "running", From: at(9), To: base}), []refusal{{0, "running", core.ErrNotPending}}, "to the due time that it has")
			e.wantWaiting(at(1), "only the lapsed one", core.Entry{ID: "lapsed", Due: base})
			e.settle(at(2), core.Settlement{Grant: running.Grant, Outcome: core.Done})
		},
	},
	{
		name: "reschedule/mixed-batch",
		rule: "Items that fail are named in their places; all others take effect.",
		run: func(e *storeEnv) {
			e.insert(task("a", at(100)), task("b", at(100)), task("c", at(100)), task("running", base))
			e.grant(e.lease(base), "running")
			e.wantRefusals(e.reschedule(
				core.Move{ID: "c", From: at(100), To: at(101)},
				core.Move{ID: "unknown", To: at(1)},
				core.Move{ID: "b", From: at(99), To: at(102)},
				core.Move{ID: "running", To: at(2)},
				core.Move{ID: "a", To: at(90)},
			), []refusal{{1, "unknown", core.ErrNotPending}, {2, "b", core.ErrMoved}, {3, "running", core.ErrNotPending}}, "a mixed batch")
			e.wantWaiting(base, "the others", core.Entry{ID: "a", Due: at(90)}, core.Entry{ID: "b", Due: at(100)}, core.Entry{ID: "c", Due: at(101)})
		},
	},
	{
		name: "reschedule/retried",
		rule: "A task that is pending again after a retry or a release is rescheduled like any other, its attempts kept.",
		run: func(e *storeEnv) {
			e.insert(task("retried", base), task("released", base))
			got := e.grantAll(e.lease(base), "retried", "released")
			e.settle(base, core.Settlement{Grant: got[0].Grant, Outcome: core.Retry, Due: at(10)}, core.Settlement{Grant: got[1].Grant, Outcome: core.Released, Due: at(20)})
			require.NoError(e, e.reschedule(core.Move{ID: "retried", From: at(10), To: at(70)}, core.Move{ID: "released", From: at(20), To: at(80)}))
			e.wantWaiting(base, "rescheduled", core.Entry{ID: "retried", Due: at(70)}, core.Entry{ID: "released", Due: at(80)})
			got = e.grantAll(e.lease(at(80)), "retried", "released")
			assert.Equal(e, 2, got[0].Attempt, "Attempt of the retried one")
			assert.Equal(e, 1, got[1].Attempt, "Attempt of the released one")
			e.wantTime(at(70), got[0].Task.Due, "Task.Due of the retried one")
			e.wantTime(at(80), got[1].Task.Due, "Task.Due of the released one")
		},
	},
	{
		name: "reschedule/times-exact",
		rule: "Due times from 1970 through 9999 are compared and set exactly to the millisecond.",
		run: func(e *storeEnv) {
			e.insert(task("a", base))
			from := base
			for _, to := range instants {
				require.NoError(e, e.reschedule(core.Move{ID: "a", From: from, To: to}), "from %s to %s", stamp(from), stamp(to))
				got := e.claim(e.c, core.Lease{Holder: e.unique("h"), Now: base, DueBy: to.Add(-time.Millisecond), Until: at(1)}, "a")
				e.wantVerdict(got[0], core.NotDue, to, "a millisecond early")
				from = to
			}
		},
	},
}

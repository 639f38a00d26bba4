package conformance

import (
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wantFates fails unless the ids are cancelled with these fates.
func (e *storeEnv) wantFates(now time.Time, about string, ids []core.ID, want ...core.Fate) {
	for i, fate := range e.cancel(e.s, now, ids...) {
		assert.Equal(e, want[i].String(), fate.String(), "%s: fate of %q", about, ids[i])
	}
}

var storeCancels = []testCase[*storeEnv]{
	{
		name: "cancel/fates",
		rule: "Cancel says for each id, in order, what it was: Cancelled where it was pending or its lease had ended, WasRunning where somebody held it, Finished where it was done or dead, Unknown where there is none.",
		run: func(e *storeEnv) {
			ids := []core.ID{"running", "unknown", "dead", "pending", "lapsed", "retried"}
			e.finish("dead", "dead")
			e.insert(tasks([]core.ID{"running", "pending", "lapsed", "retried"}, base)...)
			e.grant(e.lease(base), "running")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(1)}, "lapsed")
			e.settle(base, core.Settlement{Grant: e.grant(e.lease(base), "retried").Grant, Outcome: core.Retry, Due: at(9)})
			e.wantFates(at(5), "at each moment", ids,
				core.WasRunning, core.Unknown, core.Finished, core.Cancelled, core.Cancelled, core.Cancelled)
			e.wantWaiting(endOfTime, "after the cancels")
			for _, c := range e.claim(e.peer, e.lease(base.Add(time.Hour)), ids...) {
				e.wantVerdict(c, core.Gone, time.Time{}, "cancelled tasks never run again")
			}
		},
	},
	{
		name: "cancel/repeat", needs: "KeepsFinished",
		rule: "A repeat of Cancel gives the same fates as long as the rows are there.",
		run: func(e *storeEnv) {
			ids := []core.ID{"running", "unknown", "done", "dead", "pending", "lapsed"}
			e.finish("done", "done")
			e.finish("dead", "dead")
			e.insert(tasks([]core.ID{"running", "pending", "lapsed"}, base)...)
			e.grant(e.lease(base), "running")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(1)}, "lapsed")
			for _, now := range []time.Time{at(5), at(5), base.Add(time.Hour)} {
				e.wantFates(now, "at "+stamp(now), ids,
					core.WasRunning, core.Unknown, core.Finished, core.Finished, core.Cancelled, core.Cancelled)
			}
		},
	},
	{
		name: "cancel/deleted", needs: "!KeepsFinished",
		rule: "Where cancelled and done tasks are deleted at once, a repeat of Cancel finds nothing; dead ones are kept.",
		run: func(e *storeEnv) {
			ids := []core.ID{"done", "dead", "pending"}
			e.finish("done", "done")
			e.finish("dead", "dead")
			e.insert(task("pending", base))
			e.wantFates(at(5), "at first", ids, core.Unknown, core.Finished, core.Cancelled)
			e.wantFates(at(5), "repeated", ids, core.Unknown, core.Finished, core.Unknown)
		},
	},
	{
		name: "cancel/lease-boundary",
		rule: "A lease that ends at now is held still (WasRunning); one that ended a millisecond before is over (Cancelled).",
		run: func(e *storeEnv) {
			e.insert(task("held", base), task("over", base))
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(100)}, "held")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(99)}, "over")
			e.wantFates(at(100), "at the end of held's lease", []core.ID{"held", "over"}, core.WasRunning, core.Cancelled)
		},
	},
	{
		name: "cancel/holder-learns",
		rule: "The holder of a cancelled task learns of it by ErrLeaseLost, from Extend and from Settle; the task stays cancelled.",
		run: func(e *storeEnv) {
			for _, outcome := range outcomes {
				id := core.ID(outcome.String())
				e.insert(task(id, base))
				c := e.grant(e.lease(base), id)
				e.wantFates(at(1), "while it runs", []core.ID{id}, core.WasRunning)
				want := []refusal{{0, id, core.ErrLeaseLost}}
				e.wantRefusals(e.c.Extend(e.ctx, []core.Grant{c.Grant}, at(99_000)), want, "Extend")
				e.wantRefusals(e.c.Settle(e.ctx, at(2), []core.Settlement{{Grant: c.Grant, Outcome: outcome, Due: dueOf(outcome, at(3))}}), want, "Settle "+outcome.String())
				e.wantVerdict(e.claim(e.c, e.lease(base.Add(time.Hour)), id)[0], core.Gone, time.Time{}, "after its holder's "+outcome.String())
			}
			e.wantWaiting(endOfTime, "all cancelled")
		},
	},
	{
		name: "cancel/settle-repeat-after",
		rule: "A repeat of a Settle on a task that was cancelled since fails with ErrLeaseLost.",
		run: func(e *storeEnv) {
			for _, outcome := range []core.Outcome{core.Retry, core.Released} {
				id := core.ID(outcome.String())
				e.insert(task(id, base))
				s := []core.Settlement{{Grant: e.grant(e.lease(base), id).Grant, Outcome: outcome, Due: at(9)}}
				e.settle(at(1), s...)
				e.wantFates(at(2), "pending again", []core.ID{id}, core.Cancelled)
				e.wantRefusals(e.c.Settle(e.ctx, at(3), s), []refusal{{0, id, core.ErrLeaseLost}}, "the repeat of "+outcome.String())
			}
			e.wantWaiting(endOfTime, "all cancelled")
		},
	},
	{
		name: "cancel/finished-stays",
		rule: "Cancel leaves a done or dead task as it is.",
		run: func(e *storeEnv) {
			for _, end := range []string{"done", "dead"} {
				id := core.ID(end)
				g := e.finish(id, end)
				e.cancel(e.s, at(2), id)
				e.cancel(e.peerStore, at(2), id)
				if end == "dead" || e.provides.KeepsFinished {
					outcome := map[string]core.Outcome{"done": core.Done, "dead": core.DeadLetter}[end]
					// A cancelled task would refuse the repeat.
					require.NoError(e, e.c.Settle(e.ctx, at(3), []core.Settlement{{Grant: g, Outcome: outcome}}), "the holder's repeat on a %s task after a Cancel", end)
				}
			}
		},
	},
	{
		name: "cancel/ids-bytes",
		rule: "Cancel touches the task with exactly these bytes and no other.",
		run: func(e *storeEnv) {
			e.insert(tasks(awkwardIDs, base)...)
			var odd []core.ID
			for i, id := range awkwardIDs {
				if i%2 == 1 {
					odd = append(odd, id)
				}
			}
			for i, fate := range e.cancel(e.s, base, odd...) {
				assert.Equal(e, core.Cancelled.String(), fate.String(), odd[i])
			}
			assert.Len(e, e.waiting(base), len(awkwardIDs)-len(odd), "rows that wait")
			for i, c := range e.claim(e.c, e.lease(base), awkwardIDs...) {
				if i%2 == 1 {
					e.wantVerdict(c, core.Gone, time.Time{}, "cancelled")
				} else {
					e.wantVerdict(c, core.Granted, base.Add(leaseFor), "not cancelled")
				}
			}
		},
	},
}

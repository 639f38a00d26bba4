package conformance

import (
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

var storeBatches = []testCase[*storeEnv]{
	{
		name: "batch/one-bad-of-many-store",
		rule: "One item of a long Reschedule that fails is named by its place, one id of a long Cancel that is finished or unknown gets its own fate; all others take effect.",
		run: func(e *storeEnv) {
			n := e.scale(1001, 301)
			odd := n * 7 / 10
			ids := manyIDs("n", n)
			e.insert(tasks(ids, base)...)
			dead := e.grant(e.lease(base), ids[odd])
			moves := make([]core.Move, n)
			for i, id := range ids {
				moves[i] = core.Move{ID: id, From: base, To: at(500)}
			}
			moves[n-1].From = at(1)
			e.wantRefusals(e.s.Reschedule(e.ctx, core.Call{Now: at(1)}, moves), []refusal{{odd, ids[odd], core.ErrNotPending}, {n - 1, ids[n-1], core.ErrMoved}}, "Reschedule of many")
			moved := 0
			for _, entry := range e.waiting(base) {
				if entry.Due.Equal(at(500)) {
					moved++
				}
			}
			assert.Equal(e, n-2, moved, "tasks that were rescheduled")
			e.settle(at(1), core.Settlement{Grant: dead.Grant, Outcome: core.DeadLetter})
			ids[n-1] = "unknown"
			for i, fate := range e.cancel(e.s, at(2), ids...) {
				want := core.Cancelled
				switch i {
				case odd:
					want = core.Finished
				case n - 1:
					want = core.Unknown
				}
				assert.Equal(e, want.String(), fate.String(), "fate of item %d, %q", i, ids[i])
			}
			e.wantWaiting(endOfTime, "the one that was not named", core.Entry{ID: manyIDs("n", n)[n-1], Due: base})
		},
	},
}

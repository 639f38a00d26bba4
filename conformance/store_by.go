package conformance

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeBys = []testCase[*storeEnv]{
	{
		name: "by/store",
		rule: "Insert, Cancel and Reschedule that come after their By change nothing and answer ErrNotDone; those that come before it are as any other.",
		run: func(e *storeEnv) {
			e.insert(task("cancelled", at(1)), task("moved", at(2)))
			e.finish("again", "dead")
			call := e.call(base)
			insert := func(by time.Time) error {
				call.By = by
				return e.s.Insert(e.ctx, call, []core.Task{task("again", at(3)), task("new", at(4))})
			}
			cancel := func(by time.Time) error {
				fates, err := e.s.Cancel(e.ctx, core.Call{Now: base, By: by}, []core.ID{"cancelled"})
				if err == nil {
					assert.Equal(e, []core.Fate{core.Cancelled}, fates)
				}
				return err
			}
			move := func(by time.Time) error {
				return e.s.Reschedule(e.ctx, core.Call{Now: base, By: by}, []core.Move{{ID: "moved", From: at(2), To: at(9)}})
			}
			e.wantNotDone(insert(e.past()), "Insert")
			e.wantNotDone(cancel(e.past()), "Cancel")
			e.wantNotDone(move(e.past()), "Reschedule")
			e.wantWaiting(base, "after calls that came too late", core.Entry{ID: "cancelled", Due: at(1)}, core.Entry{ID: "moved", Due: at(2)})
			ahead := e.clock().Add(time.Minute)
			require.NoError(e, insert(ahead), "Insert in time, with the same Call.ID")
			require.NoError(e, cancel(ahead), "Cancel in time")
			require.NoError(e, move(ahead), "Reschedule in time")
			e.wantWaiting(base, "after calls in time", core.Entry{ID: "again", Due: at(3)}, core.Entry{ID: "new", Due: at(4)}, core.Entry{ID: "moved", Due: at(9)})
		},
	},
	{
		name: "by/held-store", needs: "Hold", timed: true,
		rule: "Insert, Cancel and Reschedule that are held up until after their By, wherever they wait, have no effect when they go on.",
		run:  func(e *storeEnv) { e.lateChanges(e.hold) },
	},
	{
		name: "by/locked-store", needs: "Lock", timed: true,
		rule: "Insert, Cancel and Reschedule that wait for a locked row until after their By leave it as it was.",
		run: func(e *storeEnv) {
			e.lateChanges(func() func() {
				unlocks := []func(){e.lock("again"), e.lock("cancelled"), e.lock("moved")}
				return func() {
					for _, unlock := range unlocks {
						unlock()
					}
				}
			})
		},
	},
	{
		name: "reschedule/not-before",
		rule: "After Reschedule a grant that is claimed ahead starts at the new time, be it later or nearer, also where the task had been given back.",
		run: func(e *storeEnv) {
			e.insert(task("a", at(5000)))
			move := func(from, to int) {
				require.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: base}, []core.Move{{ID: "a", From: at(from), To: at(to)}}), "Reschedule")
			}
			ahead := func(now int) core.Claimed {
				return e.grant(core.Lease{Holder: e.unique("h"), Now: at(now), DueBy: at(now + 9000), Until: at(now + 10_000)}, "a")
			}
			move(5000, 7000)
			c := ahead(0)
			e.wantTime(at(7000), startOf(c), "the start of one put off")
			e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.Released, Due: at(8000)})
			move(8000, 4000)
			e.wantTime(at(4000), startOf(ahead(2)), "the start of one given back and brought nearer")
		},
	},
}

// lateChanges makes each call while hold is in force until its By is over. hold bars the
// way to the ids again, which is dead, cancelled and moved, which are pending.
func (e *storeEnv) lateChanges(hold func() (release func())) {
	e.shaken = true
	e.insert(task("cancelled", at(1)), task("moved", at(2)))
	e.finish("again", "dead")
	list := []core.Task{task("again", at(3))}
	call := e.call(base)
	e.tooLate(hold, func(ctx context.Context, by time.Time) error {
		call := call
		call.By = by
		return e.s.Insert(ctx, call, list)
	}, func(ctx context.Context, by time.Time) error {
		_, err := e.s.Cancel(ctx, core.Call{Now: base, By: by}, []core.ID{"cancelled"})
		return err
	}, func(ctx context.Context, by time.Time) error {
		return e.s.Reschedule(ctx, core.Call{Now: base, By: by}, []core.Move{{ID: "moved", From: at(2), To: at(9)}})
	})
	e.wantWaiting(base, "after calls that came too late", core.Entry{ID: "cancelled", Due: at(1)}, core.Entry{ID: "moved", Due: at(2)})
	require.NoError(e, e.insistFree(func() error { return e.s.Insert(e.ctx, call, list) }), "Insert, repeated without a By")
	e.wantWaiting(base, "after the repeat", core.Entry{ID: "cancelled", Due: at(1)}, core.Entry{ID: "moved", Due: at(2)}, core.Entry{ID: "again", Due: at(3)})
}

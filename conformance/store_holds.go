package conformance

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var storeHolds = []testCase[*storeEnv]{
	{
		name: "hold/stores", needs: "Hold",
		rule: "While another holds the whole backend Insert, Cancel, Reschedule, Purge and Now return soon after their ctx is done, also behind a call that may wait longer; afterwards the same handle works, and a repeat is harmless.",
		run: func(e *storeEnv) {
			e.shaken = true
			e.insert(task("cancelled", base), task("moved", at(2)))
			call, first := e.call(base), e.call(base)
			attempts := []attempt{
				{"Insert", func(ctx context.Context) error { return e.s.Insert(ctx, call, []core.Task{task("new", at(3))}) }},
				{"Cancel", func(ctx context.Context) error {
					_, err := e.s.Cancel(ctx, core.Call{Now: base}, []core.ID{"cancelled"})
					return err
				}},
				{"Reschedule", func(ctx context.Context) error {
					return e.s.Reschedule(ctx, core.Call{Now: base}, []core.Move{{ID: "moved", From: at(2), To: at(4)}})
				}},
			}
			if purger, ok := e.s.(core.Purger); ok {
				attempts = append(attempts, attempt{"Purge", func(ctx context.Context) error { _, err := purger.Purge(ctx, base.Add(-time.Hour), 10); return err }})
			}
			if clock, ok := e.s.(core.TimeSource); ok {
				attempts = append(attempts, attempt{"Now", func(ctx context.Context) error { _, err := clock.Now(ctx); return err }})
			}
			insert := attempt{"Insert", func(ctx context.Context) error { return e.s.Insert(ctx, first, []core.Task{task("first", at(5))}) }}
			e.held(e.hold, insert, attempts)
			e.backAgain()
			e.wantSuccess(append(attempts, insert))
			e.wantWaiting(base, "after all was repeated", core.Entry{ID: "new", Due: at(3)}, core.Entry{ID: "moved", Due: at(4)}, core.Entry{ID: "first", Due: at(5)})
		},
	},
}

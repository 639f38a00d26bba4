package conformance

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

var storeBreaks = []testCase[*storeEnv]{
	{
		name: "break/stores", needs: "Break",
		rule: "While its backend is away Insert, Cancel, Reschedule and Purge return an error soon, and no fate or refusal; then the same handle works again, nothing that was stored is lost, and a repeat of what failed is harmless.",
		run: func(e *storeEnv) {
			e.insert(task("cancelled", base), task("kept", at(1)), task("moved", at(2)))
			list := tasks([]core.ID{"new1", "new2"}, at(3))
			call := e.call(at(1))
			fates := []core.Fate{core.Cancelled}
			if !e.provides.KeepsFinished {
				fates = append(fates, core.Unknown) // a repeat can't tell
			}
			attempts := []attempt{
				{"Insert", func(ctx context.Context) error { return e.s.Insert(ctx, call, list) }},
				{"Cancel", func(ctx context.Context) error {
					got, err := e.s.Cancel(ctx, core.Call{Now: at(1)}, []core.ID{"cancelled"})
					if err == nil && (len(got) != 1 || got[0] != fates[0] && got[0] != fates[len(fates)-1]) {
						e.Errorf("Cancel: got %v, want an error or Cancelled", got)
					}
					return err
				}},
				{"Reschedule", func(ctx context.Context) error {
					return e.s.Reschedule(ctx, core.Call{Now: at(1)}, []core.Move{{ID: "moved", From: at(2), To: at(9)}})
				}},
			}
			if purger, ok := e.s.(core.Purger); ok {
				attempts = append(attempts, attempt{"Purge", func(ctx context.Context) error {
					_, err := purger.Purge(ctx, longAgo, 10)
					return err
				}})
			}
			ids := manyIDs("long", e.scale(1001, 301))
			long, moves, longCall := tasks(ids, at(4)), make([]core.Move, len(ids)), e.call(at(1))
			for i, id := range ids {
				moves[i] = core.Move{ID: id, From: at(4), To: at(5)}
			}
			longAttempts := []attempt{
				{"Insert of many", func(ctx context.Context) error { return e.s.Insert(ctx, longCall, long) }},
				{"Reschedule of many", func(ctx context.Context) error { return e.s.Reschedule(ctx, core.Call{Now: at(1)}, moves) }},
				{"Cancel of many", func(ctx context.Context) error { _, err := e.s.Cancel(ctx, core.Call{Now: at(1)}, ids); return err }},
			}
			heal := e.breakIt()
			e.wantErrors(attempts)
			e.wantErrors(longAttempts)
			e.wantInTime(attempts)
			heal()
			e.backAgain()
			e.wantSuccess(attempts)
			e.wantSuccess(longAttempts)
			e.wantWaiting(base, "after all was repeated", core.Entry{ID: "kept", Due: at(1)},
				core.Entry{ID: "new1", Due: at(3)}, core.Entry{ID: "new2", Due: at(3)}, core.Entry{ID: "moved", Due: at(9)})
			e.wantVerdict(e.claim(e.peer, e.lease(at(9)), "cancelled")[0], core.Gone, time.Time{}, "the cancelled one")
			assert.Equal(e, 1, e.grant(e.lease(at(9)), "new1").Attempt, "Attempt of an inserted one")
		},
	},
}

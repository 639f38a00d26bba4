package conformance

import (
	"context"
	"slices"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeBasics = []testCase[*storeEnv]{
	{
		name: "contract/provides",
		rule: "A store has the optional capability Purger where it is declared, and only there; done tasks are kept where KeepsFinished is declared, and only there.",
		run: func(e *storeEnv) {
			for _, s := range []core.Store{e.s, e.peerStore} {
				_, purger := s.(core.Purger)
				assert.Equal(e, e.storeProvides.Purger, purger, "Provides.Purger against what the handle has")
			}
			e.finish("a", "done")
			fate := e.cancel(e.s, at(2), "a")[0]
			want := map[bool]core.Fate{true: core.Finished, false: core.Unknown}[e.storeProvides.KeepsFinished]
			assert.Equal(e, want.String(), fate.String(), "the fate of a done task, by which it is seen whether it is kept")
		},
	},
	{
		name: "contract/empty-batch-store",
		rule: "An empty slice is a no-op that returns nil.",
		run: func(e *storeEnv) {
			assert.NoError(e, e.s.Insert(e.ctx, e.call(base), nil), "Insert")
			got, err := e.s.Cancel(e.ctx, core.Call{Now: base}, []core.ID{})
			assert.NoError(e, err, "Cancel")
			assert.Empty(e, got, "Cancel")
			assert.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: base}, nil), "Reschedule")
			e.wantWaiting(base, "after empty batches")
		},
	},
	{
		name: "contract/done-ctx-store",
		rule: "With a ctx that is already done a method returns its error and does nothing.",
		run: func(e *storeEnv) {
			e.insert(task("a", base))
			assert.ErrorIs(e, e.s.Insert(done(), e.call(base), []core.Task{task("b", base)}), context.Canceled, "Insert")
			_, err := e.s.Cancel(done(), core.Call{Now: base}, []core.ID{"a"})
			assert.ErrorIs(e, err, context.Canceled, "Cancel")
			assert.ErrorIs(e, e.s.Reschedule(done(), core.Call{Now: base}, []core.Move{{ID: "a", To: at(9)}}), context.Canceled, "Reschedule")
			e.wantWaiting(base, "nothing was done", core.Entry{ID: "a", Due: base})
		},
	},
	{
		name: "contract/slices-are-the-callers-store",
		rule: "Slices and payloads belong to the caller again after the return, and are left as they were.",
		run: func(e *storeEnv) {
			list := tasks([]core.ID{"c", "a", "b"}, base)
			given := slices.Clone(list)
			e.insert(list...)
			assert.Equal(e, given, list, "Insert changed its argument")
			for i := range list {
				clear(list[i].Payload)
				clear(list[i].Meta)
			}
			clear(list)
			moves := []core.Move{{ID: "c", To: at(2)}, {ID: "a", To: at(1)}}
			givenMoves := slices.Clone(moves)
			require.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: base}, moves))
			assert.Equal(e, givenMoves, moves, "Reschedule changed its argument")
			for _, c := range e.grantAll(e.lease(at(5)), "c", "a", "b") {
				assert.Equal(e, "payload of "+string(c.ID), string(c.Task.Payload), "payload after the caller cleared what it had passed")
				assert.Equal(e, []byte{1}, c.Task.Meta, "meta after the caller cleared what it had passed")
			}
			ids := []core.ID{"c", "a", "b"}
			e.cancel(e.s, at(6), ids...)
			assert.Equal(e, []core.ID{"c", "a", "b"}, ids, "Cancel changed its argument")
		},
	},
	{
		name: "contract/large-batch-store",
		rule: "A slice may have any length; every item of it takes effect.",
		run: func(e *storeEnv) {
			ids := manyIDs("n", e.scale(1001, 301))
			e.insert(tasks(ids[:1], base)...)
			e.insert(tasks(ids[1:], base)...)
			moves := make([]core.Move, len(ids))
			want := make([]core.Entry, len(ids))
			for i, id := range ids {
				moves[i] = core.Move{ID: id, From: base, To: at(i + 1)}
				want[i] = core.Entry{ID: id, Due: at(i + 1)}
			}
			slices.Reverse(moves)
			require.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: base}, moves), "Reschedule of many")
			e.wantWaiting(base, "each at its own time", want...)
			for i, fate := range e.cancel(e.s, base, append(slices.Clone(ids), "unknown")...) {
				if i < len(ids) {
					require.Equal(e, core.Cancelled.String(), fate.String(), ids[i])
				} else {
					assert.Equal(e, core.Unknown.String(), fate.String(), "an unknown id at the end")
				}
			}
			e.wantWaiting(endOfTime, "all cancelled")
		},
	},
}

package conformance

import (
	"context"
	"slices"
	"sync"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var indexBasics = []testCase[*indexEnv]{
	{
		name: "contract/provides",
		rule: "An index has the optional capabilities that it declares, and no others.",
		run: func(e *indexEnv) {
			for _, idx := range []core.TimeIndex{e.idx, e.peer} {
				_, taker := idx.(core.Taker)
				_, watcher := idx.(core.Watcher)
				_, restorer := idx.(core.Restorer)
				assert.Equal(e, e.provides, IndexProvides{Taker: taker, Watcher: watcher, Restorer: restorer, Detector: detects(e.ctx, idx), Lister: e.lists(idx)}, "Provides against what the handle has")
			}
		},
	},
	{
		name: "contract/fresh-is-empty",
		rule: "A new index has no entries: Due returns none and no error.",
		run:  func(e *indexEnv) { assert.Empty(e, e.all()) },
	},
	{
		name: "contract/empty-batch",
		rule: "An empty slice is a no-op that returns nil.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: base})
			for _, entries := range [][]core.Entry{nil, {}} {
				assert.NoError(e, e.idx.Add(e.ctx, entries), "Add")
				assert.NoError(e, e.idx.Remove(e.ctx, entries), "Remove")
			}
			for _, moves := range [][]core.Move{nil, {}} {
				assert.NoError(e, e.idx.Move(e.ctx, moves), "Move")
			}
			e.wantAll("after empty batches", core.Entry{ID: "a", Due: base})
		},
	},
	{
		name: "contract/done-ctx",
		rule: "With a ctx that is already done a method returns its error and does nothing.",
		run: func(e *indexEnv) {
			kept := core.Entry{ID: "kept", Due: base}
			e.add(kept)
			for name, call := range map[string]func(context.Context) error{
				"Add":    func(ctx context.Context) error { return e.idx.Add(ctx, []core.Entry{{ID: "new", Due: base}}) },
				"Remove": func(ctx context.Context) error { return e.idx.Remove(ctx, []core.Entry{kept}) },
				"Move": func(ctx context.Context) error {
					return e.idx.Move(ctx, []core.Move{{ID: "kept", From: base, To: at(1)}})
				},
				"Due": func(ctx context.Context) error { _, err := e.idx.Due(ctx, base, 1); return err },
				"Take": func(ctx context.Context) error {
					taker, ok := e.idx.(core.Taker)
					if !ok {
						return ctx.Err()
					}
					_, _, err := taker.Take(ctx, base, at(1), 1)
					return err
				},
			} {
				assert.ErrorIs(e, call(done()), context.Canceled, name)
			}
			e.wantAll("after calls with a done ctx", kept)
		},
	},
	{
		name: "contract/slices-are-the-callers",
		rule: "Slices belong to the caller again after the return, and are left as they were.",
		run: func(e *indexEnv) {
			entries := []core.Entry{{ID: "c", Due: at(3)}, {ID: "a", Due: at(1)}, {ID: "b", Due: at(2)}}
			given := slices.Clone(entries)
			e.add(entries...)
			assert.Equal(e, given, entries, "Add changed its argument")
			clear(entries)
			moves := []core.Move{{ID: "b", From: at(2), To: at(5)}, {ID: "a", From: at(1), To: at(4)}}
			givenMoves := slices.Clone(moves)
			e.move(moves...)
			assert.Equal(e, givenMoves, moves, "Move changed its argument")
			clear(moves)
			want := []core.Entry{{ID: "c", Due: at(3)}, {ID: "a", Due: at(4)}, {ID: "b", Due: at(5)}}
			got := e.all()
			e.wantEntries(want, got, "after the caller cleared what it had passed")
			clear(got)
			e.wantAll("after the caller cleared what it had got", want...)
		},
	},
	{
		name: "contract/peers-share",
		rule: "Any number of handles share the data: what one wrote the other sees at once.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: base})
			e.wantAll("added by the first, read by the second", core.Entry{ID: "a", Due: base})
			require.NoError(e, e.peer.Move(e.ctx, []core.Move{{ID: "a", From: base, To: at(7)}}))
			got, err := e.idx.Due(e.ctx, at(7), 10)
			require.NoError(e, err)
			e.wantEntries([]core.Entry{{ID: "a", Due: at(7)}}, got, "moved by the second, read by the first")
			require.NoError(e, e.peer.Remove(e.ctx, []core.Entry{{ID: "a", Due: at(7)}}))
			e.wantAll("removed by the second")
		},
	},
	{
		name: "contract/large-batch",
		rule: "A slice may have any length; every item of it takes effect.",
		run: func(e *indexEnv) {
			for _, n := range []int{1, 1001} {
				ids := manyIDs("n", n)
				entries := make([]core.Entry, n)
				later := make([]core.Entry, n)
				moves := make([]core.Move, n)
				for i, id := range ids {
					entries[i] = core.Entry{ID: id, Due: at(i)}
					later[i] = core.Entry{ID: id, Due: at(i + 10_000)}
					moves[i] = core.Move{ID: id, From: at(i), To: at(i + 10_000)}
				}
				e.add(entries...)
				e.wantEntries(entries, e.all(), "%d added", n)
				e.move(moves...)
				e.wantEntries(later, e.all(), "%d moved", n)
				e.remove(later...)
				e.wantEntries(nil, e.all(), "%d removed", n)
			}
		},
	},
	{
		name: "contract/concurrent",
		rule: "All methods may be called concurrently; no call's effect is lost.",
		run: func(e *indexEnv) {
			const workers, each = 16, 30
			var wg sync.WaitGroup
			for w := range workers {
				e.spawn(&wg, func() {
					idx := e.idx
					if w%2 == 1 {
						idx = e.peer
					}
					for i, id := range manyIDs(string(rune('a'+w)), each) {
						entry := core.Entry{ID: id, Due: at(i)}
						require.NoError(e, idx.Add(e.ctx, []core.Entry{entry}), "Add")
						_, err := idx.Due(e.ctx, at(i), 5)
						require.NoError(e, err, "Due")
						require.NoError(e, idx.Move(e.ctx, []core.Move{{ID: id, From: at(i), To: at(i + 1)}}), "Move")
						if i%2 == 0 {
							require.NoError(e, idx.Remove(e.ctx, []core.Entry{{ID: id, Due: at(i + 1)}}), "Remove")
						}
					}
				})
			}
			wg.Wait()
			assert.Len(e, e.all(), workers*each/2, "half of the entries were removed")
		},
	},
}

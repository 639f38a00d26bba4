package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (e *indexEnv) restore(entries ...core.Entry) {
	require.NoError(e, e.idx.(core.Restorer).AddMissing(e.ctx, entries), "AddMissing")
}

var indexRestores = []testCase[*indexEnv]{
	{
		name: "restore/missing", needs: "Restorer",
		rule: "AddMissing adds each entry whose id the index doesn't have, one that was removed among them; a repeat leaves the same state.",
		run: func(e *indexEnv) {
			e.restore(core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "a", Due: at(30)})
			e.wantAll("to an empty index", core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "a", Due: at(30)})
			e.remove(core.Entry{ID: "b", Due: at(20)})
			for range 3 {
				e.restore(core.Entry{ID: "b", Due: at(40)}, core.Entry{ID: "c", Due: at(10)})
			}
			e.wantAll("after a Remove, three times",
				core.Entry{ID: "c", Due: at(10)}, core.Entry{ID: "a", Due: at(30)}, core.Entry{ID: "b", Due: at(40)})
			e.move(core.Move{ID: "c", From: at(10), To: at(50)})
			e.remove(core.Entry{ID: "a", Due: at(30)})
			e.wantAll("they are entries like all others", core.Entry{ID: "b", Due: at(40)}, core.Entry{ID: "c", Due: at(50)})
		},
	},
	{
		name: "restore/present", needs: "Restorer",
		rule: "AddMissing leaves an entry that is there as it is, whether its due time is earlier or later, without an error.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(20)})
			e.restore(core.Entry{ID: "a", Due: at(5)}, core.Entry{ID: "b", Due: at(25)})
			e.wantAll("an earlier and a later time", core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(20)})
			e.restore(core.Entry{ID: "b", Due: base}, core.Entry{ID: "c", Due: at(15)}, core.Entry{ID: "a", Due: at(99)})
			e.wantAll("beside one that is missing",
				core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "c", Due: at(15)}, core.Entry{ID: "b", Due: at(20)})
			e.move(core.Move{ID: "a", From: at(10), To: at(3_600_000)}) // a back-off
			require.NoError(e, e.peer.(core.Restorer).AddMissing(e.ctx, []core.Entry{{ID: "a", Due: at(40)}}), "AddMissing by another handle")
			e.wantAll("moved away meanwhile",
				core.Entry{ID: "c", Due: at(15)}, core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "a", Due: at(3_600_000)})
		},
	},
	{
		name: "restore/taken", needs: "Restorer Taker",
		rule: "AddMissing leaves an entry that was taken and stands at until as it is.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(1)}, core.Entry{ID: "b", Due: at(2)}, core.Entry{ID: "c", Due: at(3)})
			e.take(e.peer, at(2), at(777), 10)
			e.restore(core.Entry{ID: "a", Due: at(500)}, core.Entry{ID: "b", Due: at(900)}, core.Entry{ID: "d", Due: at(600)})
			e.wantAll("a and b were taken",
				core.Entry{ID: "c", Due: at(3)}, core.Entry{ID: "d", Due: at(600)}, core.Entry{ID: "a", Due: at(777)}, core.Entry{ID: "b", Due: at(777)})
		},
	},
	{
		name: "restore/bytes", needs: "Restorer",
		rule: "AddMissing goes by exactly these bytes of the id, and stores due times exactly.",
		run: func(e *indexEnv) {
			var want, all []core.Entry
			for i, id := range awkwardIDs {
				entry := core.Entry{ID: id, Due: instants[i%len(instants)]}
				if i%2 == 0 {
					entry.Due = at(1)
					e.add(entry)
				}
				want = append(want, entry)
				all = append(all, core.Entry{ID: id, Due: instants[i%len(instants)]})
			}
			e.restore(all...)
			slices.SortFunc(want, func(a, b core.Entry) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) })
			e.wantAll("every other one was missing", want...)
		},
	},
	{
		name: "restore/at-every-boundary", needs: "Restorer",
		rule: "A slice may have any length: AddMissing adds all items of it that are missing and leaves the others as they are.",
		run: func(e *indexEnv) {
			for _, n := range []int{255, 256, 257, 1024, 1025, 2048, 2049} {
				all, want := standing(manyIDs("n", n), at(2)), standing(manyIDs("n", n), at(2))
				var there []core.Entry
				for i := range all {
					if odd(i, n) {
						want[i].Due = at(1 + 2*(i%2)) // earlier or later
						there = append(there, want[i])
					}
				}
				e.add(there...)
				e.restore(all...)
				e.wantAll(fmt.Sprintf("after an AddMissing of %d, of which %d were there", n, len(there)), byDue(want)...)
				e.restore(standing(manyIDs("n", n), base)...)
				e.wantAll(fmt.Sprintf("after a second one of %d", n), byDue(want)...)
				e.remove(want...)
			}
		},
	},
	{
		name: "restore/one-winner", needs: "Restorer",
		rule: "Of many AddMissing of one id at once exactly one adds it; from then on it stays as it is.",
		run: func(e *indexEnv) {
			const workers = 16
			for round := range 20 {
				id := core.ID(e.unique("n"))
				seen := make([]core.Entry, workers) // by each, right after its own call
				begin := make(chan struct{})
				var wg sync.WaitGroup
				for w := range workers {
					e.spawn(&wg, func() {
						idx := []core.TimeIndex{e.idx, e.peer}[w%2]
						<-begin
						require.NoError(e, idx.(core.Restorer).AddMissing(e.ctx, []core.Entry{{ID: id, Due: at(100 + (w*7)%workers)}}))
						got, err := idx.Due(e.ctx, endOfTime, 10)
						require.NoError(e, err)
						require.Len(e, got, 1)
						seen[w] = got[0]
					})
				}
				close(begin)
				wg.Wait()
				last := e.all()
				require.Len(e, last, 1)
				for w, entry := range seen {
					e.wantEntries(last, []core.Entry{entry}, "round %d, as caller %d of %d saw it", round, w, workers)
				}
				e.remove(last...)
			}
		},
	},
	{
		name: "restore/empty-and-done", needs: "Restorer",
		rule: "AddMissing of an empty slice is a no-op that returns nil; it leaves its argument as it was; with a ctx that is already done it returns its error and does nothing.",
		run: func(e *indexEnv) {
			restorer := e.idx.(core.Restorer)
			for _, entries := range [][]core.Entry{nil, {}} {
				assert.NoError(e, restorer.AddMissing(e.ctx, entries), "of nothing")
			}
			entries := []core.Entry{{ID: "c", Due: at(3)}, {ID: "a", Due: at(1)}, {ID: "b", Due: at(2)}}
			want := slices.Clone(entries)
			assert.ErrorIs(e, restorer.AddMissing(done(), entries), context.Canceled)
			e.wantAll("after a call with a done ctx")
			e.restore(entries...)
			assert.Equal(e, want, entries, "AddMissing changed its argument")
			clear(entries)
			e.wantAll("after the caller cleared what it had passed", byDue(want)...)
		},
	},
	{
		name: "watch/restored", needs: "Restorer Watcher",
		rule: "Watch calls notify when an AddMissing, from any process, brought an entry that is earlier than all others, wherever in the slice it stands.",
		run: func(e *indexEnv) {
			w := e.watch()
			defer w.stop(e)
			due := 1_000_000
			restore := func(place, n int) {
				due--
				entries := standing(make([]core.ID, n), at(2_000_000))
				for i := range entries {
					entries[i].ID = core.ID(e.unique("n"))
				}
				entries[place].Due = at(due)
				require.NoError(e, e.peer.(core.Restorer).AddMissing(e.ctx, entries), "AddMissing")
			}
			if !e.wait(func() bool { restore(0, 1); return w.calls.Load() > 0 }) {
				e.Errorf("got no notification in %s of heads that another handle restored, want one", e.patience)
				e.FailNow()
			}
			for _, in := range [][2]int{{0, 1}, {1, 3}, {2, 3}, {300, 600}} {
				w.settle(e)
				before := w.calls.Load()
				restore(in[0], in[1])
				if !e.wait(func() bool { return w.calls.Load() > before }) {
					e.Errorf("got no notification of an AddMissing whose item %d of %d is earlier than all others, want one", in[0], in[1])
					return // the others would each take as long to fail
				}
			}
		},
	},
}

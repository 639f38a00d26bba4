package conformance

import (
	"cmp"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

var indexBytes = []testCase[*indexEnv]{
	{
		name: "ids/bytes",
		rule: "Ids are bytes: two ids that differ in case, composition or collation are two entries, and each comes back as it was given.",
		run: func(e *indexEnv) {
			var entries []core.Entry
			for _, id := range awkwardIDs {
				entries = append(entries, core.Entry{ID: id, Due: base})
			}
			e.add(entries...)
			slices.SortFunc(entries, func(a, b core.Entry) int { return cmp.Compare(a.ID, b.ID) })
			e.wantAll("all stand at one due time, in the order of their bytes", entries...)
		},
	},
	{
		name: "ids/change-one",
		rule: "Move and Remove touch the entry with exactly these bytes and no other.",
		run: func(e *indexEnv) {
			want := map[core.ID]core.Entry{}
			for _, id := range awkwardIDs {
				want[id] = core.Entry{ID: id, Due: base}
				e.add(want[id])
			}
			for i, id := range awkwardIDs {
				if i%2 == 0 {
					e.move(core.Move{ID: id, From: base, To: at(i + 1)})
					want[id] = core.Entry{ID: id, Due: at(i + 1)}
				} else {
					e.remove(core.Entry{ID: id, Due: base})
					delete(want, id)
				}
			}
			var entries []core.Entry
			for _, entry := range want {
				entries = append(entries, entry)
			}
			slices.SortFunc(entries, func(a, b core.Entry) int { return a.Due.Compare(b.Due) })
			e.wantAll("every other id moved, the rest removed", entries...)
		},
	},
	{
		name: "times/exact",
		rule: "Due times from 1970 through 9999 are stored exactly to the millisecond and come back in UTC.",
		run: func(e *indexEnv) {
			var want []core.Entry
			for i, due := range instants {
				want = append(want, core.Entry{ID: core.ID(rune('a' + i)), Due: due})
			}
			e.add(want...)
			e.wantAll("as added", want...)
			for _, entry := range want { // there and back
				e.move(core.Move{ID: entry.ID, From: entry.Due, To: base})
				e.move(core.Move{ID: entry.ID, From: base, To: entry.Due})
			}
			e.wantAll("moved away and back", want...)
			e.remove(want...)
			e.wantAll("removed by their exact due times")
		},
	},
	{
		name: "times/due-boundary",
		rule: "Due returns entries at or before now, and none that is a millisecond later.",
		run: func(e *indexEnv) {
			for i, due := range instants {
				entry := core.Entry{ID: core.ID(rune('a' + i)), Due: due}
				e.add(entry)
				got, err := e.idx.Due(e.ctx, due, 10)
				require.NoError(e, err)
				e.wantEntries([]core.Entry{entry}, got, "at its due time")
				got, err = e.idx.Due(e.ctx, due.Add(-time.Millisecond), 10)
				require.NoError(e, err)
				e.wantEntries(nil, got, "a millisecond before %s", stamp(due))
				e.remove(entry)
			}
		},
	},
	{
		name: "due/order",
		rule: "Due orders by due time, then by the bytes of the id, whatever the order of adding.",
		run: func(e *indexEnv) {
			e.add(
				core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "é", Due: at(1)}, core.Entry{ID: "z", Due: base},
				core.Entry{ID: "B", Due: at(1)}, core.Entry{ID: "a", Due: at(2)}, core.Entry{ID: "b-", Due: at(1)},
			)
			e.add(core.Entry{ID: "a1", Due: at(1)}, core.Entry{ID: "10", Due: at(1)}, core.Entry{ID: "9", Due: at(1)})
			e.wantAll("by due, then bytes",
				core.Entry{ID: "z", Due: base},
				core.Entry{ID: "10", Due: at(1)}, core.Entry{ID: "9", Due: at(1)}, core.Entry{ID: "B", Due: at(1)}, core.Entry{ID: "a1", Due: at(1)},
				core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "b-", Due: at(1)}, core.Entry{ID: "é", Due: at(1)},
				core.Entry{ID: "a", Due: at(2)},
			)
		},
	},
	{
		name: "due/limit",
		rule: "Due returns up to limit entries, the first in order.",
		run: func(e *indexEnv) {
			var entries []core.Entry
			for i, id := range manyIDs("n", 50) {
				entries = append(entries, core.Entry{ID: id, Due: at(i / 10)})
			}
			e.add(entries...)
			for _, limit := range []int{1, 7, 50, 51, 1000} {
				got, err := e.idx.Due(e.ctx, at(1000), limit)
				require.NoError(e, err)
				e.wantEntries(entries[:min(limit, 50)], got, "limit %d", limit)
			}
		},
	},
	{
		name: "due/changes-nothing",
		rule: "Due changes nothing: a second call returns the same.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: base}, core.Entry{ID: "b", Due: at(1)})
			for range 3 {
				got, err := e.idx.Due(e.ctx, base, 10)
				require.NoError(e, err)
				e.wantEntries([]core.Entry{{ID: "a", Due: base}}, got, "Due")
			}
			e.wantAll("after three looks", core.Entry{ID: "a", Due: base}, core.Entry{ID: "b", Due: at(1)})
		},
	},
}

package conformance

import (
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lists tells whether a handle is a Lister that lists what is there: a decorator may
// have the method and nothing behind it.
func (e *indexEnv) lists(idx core.TimeIndex) bool {
	l, ok := idx.(core.Lister)
	if !ok {
		return false
	}
	probe := core.Entry{ID: "probe", Due: at(1)}
	require.NoError(e, idx.Add(e.ctx, []core.Entry{probe}), "Add")
	got, err := l.List(e.ctx, core.Entry{}, endOfTime, 1)
	require.NoError(e, idx.Remove(e.ctx, []core.Entry{probe}), "Remove")
	return len(got) > 0 || err != nil
}

func (e *indexEnv) list(idx core.TimeIndex, after core.Entry, before time.Time, limit int) []core.Entry {
	got, err := idx.(core.Lister).List(e.ctx, after, before, limit)
	require.NoError(e, err, "List")
	return got
}

// listAll reads all pages.
func (e *indexEnv) listAll(idx core.TimeIndex, after core.Entry, before time.Time, limit int) []core.Entry {
	var all []core.Entry
	for {
		page := e.list(idx, after, before, limit)
		if len(page) == 0 {
			return all
		}
		require.LessOrEqual(e, len(page), limit, "entries of a page, limit %d", limit)
		all = append(all, page...)
		require.Less(e, len(all), 100_000, "pages without end, the last from %s %q on", stamp(after.Due), after.ID)
		after = page[len(page)-1]
	}
}

var indexLists = []testCase[*indexEnv]{
	{
		name: "list/order-and-bounds", needs: "Lister",
		rule: "List returns entries in the order of Due, strictly after `after` and due before the bound, those that aren't due for long among them; a time without an id stands before all entries of that time.",
		run: func(e *indexEnv) {
			a, b, c, d := core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "c", Due: at(1)}, core.Entry{ID: "a", Due: at(2)}, core.Entry{ID: "z", Due: endOfTime.Add(-time.Millisecond)}
			e.add(d, c, b, a)
			e.wantEntries([]core.Entry{a, b, c, d}, e.list(e.peer, core.Entry{}, endOfTime, 10), "from the start to the end of time")
			e.wantEntries([]core.Entry{a, b}, e.list(e.peer, core.Entry{}, at(2), 10), "before the time of the third")
			e.wantEntries([]core.Entry{a, b}, e.list(e.peer, core.Entry{Due: at(1)}, at(2), 10), "at exactly the first's time")
			e.wantEntries([]core.Entry{c}, e.list(e.peer, core.Entry{Due: at(2)}, at(3), 10), "at exactly the third's time")
			e.wantEntries([]core.Entry{b, c, d}, e.list(e.peer, a, endOfTime, 10), "after the first")
			e.wantEntries([]core.Entry{c, d}, e.list(e.peer, b, endOfTime, 10), "after the second")
			e.wantEntries([]core.Entry{b, c}, e.list(e.peer, a, endOfTime, 2), "after the first, limit 2")
			e.wantEntries(nil, e.list(e.peer, d, endOfTime, 10), "after the last")
			e.wantEntries(nil, e.list(e.peer, core.Entry{Due: at(1)}, at(1), 10), "before its own beginning")
			e.wantAll("List changes nothing", a, b, c, d)
		},
	},
	{
		name: "list/goes-on", needs: "Lister",
		rule: "List goes on after an entry that is no longer there, was moved or never was, as if it stood there; also among many entries of one millisecond, by the bytes of the id.",
		run: func(e *indexEnv) {
			var want []core.Entry
			for _, id := range append(manyIDs("n", 700), awkwardIDs...) {
				want = append(want, core.Entry{ID: id, Due: at(5)})
			}
			e.add(want...)
			want = byDue(want)
			for _, limit := range []int{1000, 256, 7} {
				e.wantEntries(want, e.listAll(e.peer, core.Entry{}, endOfTime, limit), "limit %d", limit)
			}
			for _, i := range []int{0, 1, 350, len(want) - 2} {
				e.remove(want[i])
				e.wantEntries(want[i+1:], e.list(e.idx, want[i], endOfTime, 10_000), "after number %d, which was removed", i)
				e.add(core.Entry{ID: want[i].ID, Due: at(9)})
				e.wantEntries(want[i+1:], e.list(e.idx, want[i], at(9), 10_000), "after number %d, which stands elsewhere", i)
				e.remove(core.Entry{ID: want[i].ID, Due: at(9)})
				e.add(want[i])
			}
		},
	},
	{
		name: "list/taken", needs: "Lister Taker",
		rule: "What a Take moved to until is listed at exactly until, in order, by any handle, and nothing that stands elsewhere is.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "d", Due: at(1)}, core.Entry{ID: "a", Due: at(2)}, core.Entry{ID: "c", Due: at(3)}, core.Entry{ID: "before", Due: at(776)}, core.Entry{ID: "behind", Due: at(778)})
			e.take(e.idx, at(2), at(777), 10)
			e.wantEntries([]core.Entry{{ID: "a", Due: at(777)}, {ID: "d", Due: at(777)}}, e.list(e.peer, core.Entry{Due: at(777)}, at(778), 10), "at until")
			e.take(e.peer, at(3), at(779), 10)
			e.wantEntries([]core.Entry{{ID: "c", Due: at(779)}}, e.list(e.idx, core.Entry{Due: at(779)}, at(780), 10), "at the until of another Take")
		},
	},
	{
		name: "list/large", needs: "Lister",
		rule: "limit may have any size; every entry that stands there is found, also over many pages, exactly as it stands.",
		run: func(e *indexEnv) {
			entries := standing(manyIDs("n", 3001), at(1))
			for i := range entries {
				entries[i].Due = at(i / 3 * 7)
			}
			for i, due := range instants {
				if due.Before(endOfTime) {
					entries = append(entries, core.Entry{ID: core.ID("instant-" + string(rune('a'+i))), Due: due})
				}
			}
			e.add(entries...)
			want := byDue(slices.Clone(entries))
			for _, limit := range []int{1, 500, 1000, 5000} {
				from := core.Entry{}
				some := want
				if limit == 1 {
					some = want[len(want)-20:]
					from = want[len(want)-21]
				}
				e.wantEntries(some, e.listAll(e.peer, from, endOfTime, limit), "limit %d", limit)
			}
		},
	},
	{
		name: "list/done-ctx", needs: "Lister",
		rule: "With a ctx that is already done List returns an error and no entries; a limit is never exceeded.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(1)}, core.Entry{ID: "b", Due: at(2)})
			got, err := e.idx.(core.Lister).List(done(), core.Entry{}, endOfTime, 10)
			assert.Error(e, err, "List")
			assert.Empty(e, got, "List")
			assert.Len(e, e.list(e.idx, core.Entry{}, endOfTime, 1), 1, "limit 1")
		},
	},
}

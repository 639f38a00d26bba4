package conformance

import (
	"cmp"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// The one item that is odd in a batch of 1,001: neither first nor last, nor at
// the turn of a round number.
const oddOne = 700

var indexBatches = []testCase[*indexEnv]{
	{
		name: "move/one-elsewhere-of-many",
		rule: "One entry of a long batch that stands elsewhere, and one that is missing, are left alone by Move; all others are moved.",
		run: func(e *indexEnv) {
			entries, moves := e.addMany(at(1))
			for i := range moves {
				moves[i].From, moves[i].To = at(1), at(50_000)
				entries[i].Due = at(50_000)
			}
			moves[oddOne].From, entries[oddOne].Due = at(2), at(1)
			moves[1000].ID = "missing"
			entries[1000].Due = at(1)
			e.move(moves...)
			e.wantAll("all but two were moved", byDue(entries)...)
		},
	},
	{
		name: "remove/one-elsewhere-of-many",
		rule: "One entry of a long batch that stands elsewhere is left alone by Remove; all others are deleted.",
		run: func(e *indexEnv) {
			entries, _ := e.addMany(at(1))
			entries[oddOne].Due = at(2)
			e.remove(append(slices.Clone(entries), core.Entry{ID: "missing", Due: at(1)})...)
			e.wantAll("the one that stood elsewhere", core.Entry{ID: entries[oddOne].ID, Due: at(1)})
		},
	},
	{
		name: "add/one-earlier-of-many",
		rule: "One id of a long batch that is there already at an earlier time stays there; all others are added.",
		run: func(e *indexEnv) {
			ids := manyIDs("n", 1001)
			e.add(core.Entry{ID: ids[oddOne], Due: base}, core.Entry{ID: ids[1000], Due: at(9)})
			entries, _ := e.addMany(at(1))
			entries[oddOne].Due = base
			e.wantAll("all at the earlier of their times", byDue(entries)...)
		},
	},
}

// addMany adds 1,001 entries at one due time and returns them, and as many moves
// of the same ids.
func (e *indexEnv) addMany(due time.Time) ([]core.Entry, []core.Move) {
	ids := manyIDs("n", 1001)
	entries, moves := make([]core.Entry, len(ids)), make([]core.Move, len(ids))
	for i, id := range ids {
		entries[i], moves[i].ID = core.Entry{ID: id, Due: due}, id
	}
	e.add(entries...)
	return entries, moves
}

// byDue returns the entries in the order of Due.
func byDue(entries []core.Entry) []core.Entry {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b core.Entry) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) })
	return sorted
}

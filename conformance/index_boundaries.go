package conformance

import (
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/core"
)

var indexBoundaries = []testCase[*indexEnv]{
	{
		name: "batch/at-every-boundary",
		rule: "A slice may have any length: every item of Add, Move and Remove takes effect, but those that stand elsewhere.",
		run: func(e *indexEnv) {
			for _, n := range []int{255, 256, 257, 1024, 1025, 2048, 2049} {
				entries := make([]core.Entry, n)
				moves := make([]core.Move, n)
				for i, id := range manyIDs("n", n) {
					entries[i] = core.Entry{ID: id, Due: at(1)}
					moves[i] = core.Move{ID: id, From: at(1), To: at(2)}
				}
				e.add(entries...)
				e.wantAll(fmt.Sprintf("after an Add of %d", n), entries...)
				var left []core.Entry
				for i := range moves {
					if odd(i, n) {
						moves[i].From = at(3)
						left = append(left, entries[i])
					} else {
						entries[i].Due = at(2)
					}
				}
				e.move(moves...)
				e.wantAll(fmt.Sprintf("after a Move of %d", n), byDue(entries)...)
				gone := slices.Clone(entries)
				for i := range gone {
					gone[i].Due = at(2)
				}
				e.remove(gone...)
				e.wantAll(fmt.Sprintf("after a Remove of %d", n), left...)
				e.remove(left...)
			}
			e.wantAll("in the end")
		},
	},
}

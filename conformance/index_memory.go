package conformance

import (
	"strings"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

var indexMemory = []testCase[*indexEnv]{
	{
		name: "contract/memory-is-the-callers",
		rule: "What is returned is the caller's: later calls change nothing in it, neither the slice nor the bytes of the ids, and what the caller writes there changes no other answer.",
		run: func(e *indexEnv) {
			var entries, others []core.Entry
			for i, id := range manyIDs("n", 300) { // the same length, so that other bytes may take their place
				entries = append(entries, core.Entry{ID: id, Due: at(i)})
				others = append(others, core.Entry{ID: "m" + id[1:], Due: at(2000 + i)})
			}
			e.add(entries...)
			answer, err := e.idx.Due(e.ctx, at(1000), 1000)
			require.NoError(e, err, "Due")
			was := copied(answer)
			half, err := e.idx.Due(e.ctx, at(1000), 150)
			require.NoError(e, err, "Due")
			clear(half[:cap(half)])
			e.wantEntries(was, answer, "an answer of Due, after the caller cleared a later one")

			var taken, wasTaken []core.Entry
			if e.provides.Taker {
				ids, _ := e.take(e.idx, at(1000), at(1500), 1000)
				taken = standing(ids, at(1500))
				wasTaken = copied(taken)
			}
			e.remove(append(copied(was), wasTaken...)...)
			e.add(others...)
			if _, err := e.idx.Due(e.ctx, endOfTime, 1000); err != nil {
				e.Errorf("Due: got error %v", err)
			}
			e.wantEntries(was, answer, "an answer of Due, after later calls")
			e.wantEntries(wasTaken, taken, "an answer of Take, after later calls")
		},
	},
}

// copied is the entries with bytes of their own.
func copied(entries []core.Entry) []core.Entry {
	list := make([]core.Entry, len(entries))
	for i, entry := range entries {
		list[i] = core.Entry{ID: core.ID(strings.Clone(string(entry.ID))), Due: entry.Due}
	}
	return list
}

package conformance

import (
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var indexTakes = []testCase[*indexEnv]{
	{
		name: "take/order-and-limit", needs: "Taker",
		rule: "Take picks up to limit entries with due time at or before now, in the order of Due.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "d", Due: at(3)}, core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "a", Due: at(1)}, core.Entry{ID: "c", Due: at(2)}, core.Entry{ID: "e", Due: at(4)})
			ids, _ := e.take(e.idx, at(3), at(1000), 2)
			assert.Equal(e, []core.ID{"a", "b"}, ids, "limit 2")
			ids, _ = e.take(e.idx, at(3), at(1000), 10)
			assert.Equal(e, []core.ID{"c", "d"}, ids, "what is left by now; e is due a millisecond later")
			ids, _ = e.take(e.idx, at(3), at(1000), 10)
			assert.Empty(e, ids, "nothing left by now")
		},
	},
	{
		name: "take/moves", needs: "Taker",
		rule: "In the index each taken id now stands at until; the others stand where they stood.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(1)}, core.Entry{ID: "b", Due: at(2)}, core.Entry{ID: "c", Due: at(3)})
			e.take(e.idx, at(2), at(777), 10)
			e.wantAll("a and b taken", core.Entry{ID: "c", Due: at(3)}, core.Entry{ID: "a", Due: at(777)}, core.Entry{ID: "b", Due: at(777)})
			e.move(core.Move{ID: "a", From: at(777), To: at(5)})
			e.remove(core.Entry{ID: "b", Due: at(777)})
			e.wantAll("a moved, b removed by until", core.Entry{ID: "c", Due: at(3)}, core.Entry{ID: "a", Due: at(5)})
			ids, _ := e.take(e.peer, at(777), at(888), 10)
			assert.Equal(e, []core.ID{"c", "a"}, ids, "what came due again is taken again")
		},
	},
	{
		name: "take/next", needs: "Taker",
		rule: "next is the earliest due time that remains outside of what this call took, zero if there is none.",
		run: func(e *indexEnv) {
			ids, next := e.take(e.idx, at(5), at(100), 10)
			assert.Empty(e, ids)
			e.wantTime(time.Time{}, next, "an empty index")
			e.add(core.Entry{ID: "a", Due: at(1)})
			_, next = e.take(e.idx, at(5), at(100), 10)
			e.wantTime(time.Time{}, next, "the only entry was taken: what this call took doesn't count")
			e.add(core.Entry{ID: "b", Due: at(2)}, core.Entry{ID: "c", Due: at(3)}, core.Entry{ID: "d", Due: at(50)})
			_, next = e.take(e.idx, at(5), at(100), 1)
			e.wantTime(at(3), next, "b taken, limit reached, c is due already")
			_, next = e.take(e.idx, at(5), at(200), 10)
			e.wantTime(at(50), next, "c taken, d comes next")
			_, next = e.take(e.idx, at(60), at(300), 10)
			e.wantTime(at(100), next, "d taken; a and b, taken by earlier calls, stand at their until")
			ids, next = e.take(e.idx, at(60), at(300), 10)
			assert.Empty(e, ids)
			e.wantTime(at(100), next, "nothing taken")
		},
	},
	{
		name: "take/times-exact", needs: "Taker",
		rule: "until and next are exact to the millisecond over the whole range.",
		run: func(e *indexEnv) {
			for i, due := range instants[:len(instants)-1] {
				until := instants[i+1]
				e.add(core.Entry{ID: "a", Due: due}, core.Entry{ID: "b", Due: until})
				ids, next := e.take(e.idx, due, until, 1)
				assert.Equal(e, []core.ID{"a"}, ids)
				e.wantTime(until, next, "b remains")
				e.wantAll("both stand there", core.Entry{ID: "a", Due: until}, core.Entry{ID: "b", Due: until})
				e.remove(core.Entry{ID: "a", Due: until}, core.Entry{ID: "b", Due: until})
			}
		},
	},
	{
		name: "take/ids-bytes", needs: "Taker",
		rule: "Take returns ids byte for byte.",
		run: func(e *indexEnv) {
			for _, id := range awkwardIDs {
				e.add(core.Entry{ID: id, Due: base})
			}
			ids, _ := e.take(e.idx, base, at(1), len(awkwardIDs)+1)
			assert.ElementsMatch(e, awkwardIDs, ids)
		},
	},
	{
		name: "take/large", needs: "Taker",
		rule: "limit may have any size; one call takes all that is due up to it, and next is right then too.",
		run: func(e *indexEnv) {
			ids := manyIDs("n", 1001)
			entries := standing(ids, base)
			e.add(entries...)
			got, next := e.take(e.idx, base, at(1), 5000)
			assert.Equal(e, ids, got)
			e.wantTime(time.Time{}, next, "nothing remains")
			e.remove(standing(ids, at(1))...)
			// Where a call takes several steps, each sees what the ones before moved.
			other := core.Entry{ID: "other", Due: at(3)}
			for _, n := range []int{255, 256, 257, 300, 512, 513} {
				e.add(entries[:n]...)
				got, next = e.take(e.idx, base, at(1), n)
				assert.Equal(e, ids[:n], got, "limit %d, as many are due", n)
				e.wantTime(time.Time{}, next, "limit %d, nothing remains", n)
				e.add(other)
				got, next = e.take(e.idx, at(1), at(3), n)
				assert.Equal(e, ids[:n], got, "limit %d, all that is due", n)
				e.wantTime(at(3), next, "limit %d, another one stands at until", n)
				e.remove(other)
				got, next = e.take(e.idx, at(3), at(4), n-1)
				assert.Equal(e, ids[:n-1], got, "limit %d, one more is due", n-1)
				e.wantTime(at(3), next, "limit %d, the one that is due", n-1)
				e.remove(standing(ids[:n-1], at(4))...)
				e.remove(core.Entry{ID: ids[n-1], Due: at(3)})
			}
		},
	},
	{
		name: "take/no-id-twice", needs: "Taker",
		rule: "Two calls of Take, from any process, never take the same entry at the same due time, and none is left out.",
		run: func(e *indexEnv) {
			ids := manyIDs("n", 2000)
			var entries []core.Entry
			for i, id := range ids {
				entries = append(entries, core.Entry{ID: id, Due: at(i % 7)})
			}
			e.add(entries...)
			var mu sync.Mutex
			taken := map[core.ID]int{}
			var wg sync.WaitGroup
			for w := range 16 {
				e.spawn(&wg, func() {
					idx := []core.TimeIndex{e.idx, e.peer}[w%2]
					for {
						got, _, err := idx.(core.Taker).Take(e.ctx, at(10), at(10_000+w), 17)
						require.NoError(e, err)
						if len(got) == 0 {
							return
						}
						mu.Lock()
						for _, id := range got {
							taken[id]++
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			for id, n := range taken {
				if n != 1 {
					e.Errorf("id %q was taken %d times, want once", id, n)
				}
			}
			assert.Len(e, taken, len(ids), "ids taken")
		},
	},
}

// standing are entries of ids, all with one due time.
func standing(ids []core.ID, due time.Time) []core.Entry {
	entries := make([]core.Entry, len(ids))
	for i, id := range ids {
		entries[i] = core.Entry{ID: id, Due: due}
	}
	return entries
}

package heapindex

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// model is the table as a plain map: slow and plainly right.
type model map[core.ID]int64

func (m model) sorted() []core.ID {
	ids := make([]core.ID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b core.ID) int { return cmp.Or(cmp.Compare(m[a], m[b]), cmp.Compare(a, b)) })
	return ids
}

func (m model) take(now, until int64, limit int) (taken []core.ID, next int64) {
	for _, id := range m.sorted() {
		if m[id] <= now && len(taken) < limit {
			taken = append(taken, id)
		}
	}
	next = never
	for _, id := range m.sorted() {
		if !slices.Contains(taken, id) {
			next = m[id]
			break
		}
	}
	for _, id := range taken {
		m[id] = until
	}
	return taken, next
}

// A long random history of few ids and few instants, so that ties, repeats and
// re-used slots are common; after each step the table equals the model.
func TestTableAgreesWithAPlainMapOverRandomHistories(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		tab, m := newTable(), model{}
		for range 600 {
			id := core.ID(fmt.Sprintf("id-%d", r.IntN(40)))
			from, to := int64(r.IntN(12)), int64(r.IntN(12))
			switch r.IntN(7) {
			case 0, 1:
				tab.addEarlier(id, to)
				if old, ok := m[id]; !ok || to < old {
					m[id] = to
				}
			case 2:
				tab.remove(id, from)
				if old, ok := m[id]; ok && old == from {
					delete(m, id)
				}
			case 3:
				tab.move(id, from, to)
				if old, ok := m[id]; ok && old == from {
					m[id] = to
				}
			case 4:
				limit := r.IntN(6)
				until := from + 1 + int64(r.IntN(4))
				taken, next := tab.take(from, until, limit)
				wantTaken, wantNext := m.take(from, until, limit)
				require.Equal(t, wantTaken, taken, "take(now %d, until %d, limit %d)", from, until, limit)
				require.Equal(t, wantNext, next)
			case 5:
				tab.addMissing(id, to)
				if _, ok := m[id]; !ok {
					m[id] = to
				}
			case 6:
				var got []core.ID
				n := r.IntN(50)
				tab.ascend(func(it item) bool {
					if len(got) == n {
						return false
					}
					got = append(got, tab.id(it))
					return true
				})
				require.Equal(t, m.sorted()[:min(n, len(m))], slices.Clip(append([]core.ID{}, got...)))
			}
			checkInvariants(t, tab, m)
		}
	}
}

func checkInvariants(t *testing.T, tab *table, m model) {
	t.Helper()
	require.Equal(t, len(m), tab.len())
	require.Equal(t, len(m), tab.used)
	for _, h := range []*heap{&tab.waiting, &tab.held} {
		for at, it := range h.items {
			require.Equal(t, place(at)^h.mask, tab.places[it.slot])
			slot, ok := tab.slot(tab.id(it))
			require.True(t, ok, "%s is found", tab.id(it))
			require.Equal(t, it.slot, slot)
			require.Equal(t, m[tab.id(it)], it.due)
			if at > 0 {
				require.False(t, tab.less(it, h.items[(at-1)/fanout]), "child before its parent at %d", at)
			}
		}
	}
	// Each slot is in use or on the free list, once.
	free := 0
	for slot := tab.free; slot >= 0; slot = int32(tab.places[slot]) {
		require.Empty(t, tab.ids[slot], "a free slot keeps no string alive")
		free++
		require.LessOrEqual(t, free, len(tab.ids))
	}
	require.Equal(t, len(tab.ids), tab.len()+free)
}

func TestTakeTakesAnEntryOnceWhenUntilIsNotAfterNow(t *testing.T) {
	tab := newTable()
	tab.addEarlier("a", 5)
	taken, _ := tab.take(10, 10, 3)
	require.Equal(t, []core.ID{"a"}, taken)
	require.Equal(t, int64(10), tab.head())
}

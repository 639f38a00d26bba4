package heapindex_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func entry(id string, ms int) core.Entry { return core.Entry{ID: core.ID(id), Due: at(ms)} }

func TestConcurrentTakesNeverShareAnEntry(t *testing.T) {
	t.Attr("dueclaim.backend", "index:heap")
	const entries, takers = 5_000, 8
	idx := heapindex.New()
	batch := make([]core.Entry, entries)
	for i := range batch {
		batch[i] = entry(fmt.Sprint("id-", i), i%50)
	}
	require.NoError(t, idx.Add(t.Context(), batch))
	var mu sync.Mutex
	seen := map[core.ID]int{}
	var wg sync.WaitGroup
	for range takers {
		wg.Go(func() {
			for {
				ids, next, err := idx.Take(t.Context(), at(50), at(1000), 7)
				if !assert.NoError(t, err) || len(ids) == 0 {
					assert.Equal(t, at(1000), next)
					return
				}
				mu.Lock()
				for _, id := range ids {
					seen[id]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, entries)
	for id, n := range seen {
		require.Equal(t, 1, n, "%s", id)
	}
}

func TestTakeReportsTheNextDueTimeOfTheOthersOnly(t *testing.T) {
	idx := heapindex.New()
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1), entry("b", 2), entry("late", 900)}))
	ids, next, err := idx.Take(t.Context(), at(5), at(100), 10)
	require.NoError(t, err)
	require.Equal(t, []core.ID{"a", "b"}, ids)
	require.Equal(t, at(900), next, "not the 100 at which a and b now stand")
	ids, next, err = idx.Take(t.Context(), at(5), at(100), 10)
	require.NoError(t, err)
	require.Empty(t, ids)
	require.Equal(t, at(100), next, "a and b are others to this call")
}

func TestTakeOfAnEmptyIndexHasNoNext(t *testing.T) {
	_, next, err := heapindex.New().Take(t.Context(), at(0), at(1), 5)
	require.NoError(t, err)
	require.True(t, next.IsZero())
}

func TestWatchWakesEachWatcherForAnEarlierHeadOnly(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		idx := heapindex.New()
		ctx, cancel := context.WithCancel(t.Context())
		var wakes [2]int
		var wg sync.WaitGroup
		for i := range wakes {
			wg.Go(func() { assert.ErrorIs(t, idx.Watch(ctx, func() { wakes[i]++ }), context.Canceled) })
		}
		step := func(want int, why string, do func() error) {
			require.NoError(t, do())
			synctest.Wait()
			require.Equal(t, [2]int{want, want}, wakes, why)
		}
		add := func(id string, ms int) func() error {
			return func() error { return idx.Add(ctx, []core.Entry{entry(id, ms)}) }
		}
		step(1, "once at the start", func() error { return nil })
		step(2, "the first entry", add("a", 100))
		step(2, "a later one", add("b", 200))
		step(2, "one at the same time", add("c", 100))
		step(3, "an earlier one", add("d", 50))
		step(3, "the head moved to later", func() error {
			return idx.Move(ctx, []core.Move{{ID: "d", From: at(50), To: at(300)}})
		})
		step(4, "another moved to the head", func() error {
			return idx.Move(ctx, []core.Move{{ID: "b", From: at(200), To: at(10)}})
		})
		missing := func(id string, ms int) func() error {
			return func() error { return idx.AddMissing(ctx, []core.Entry{entry(id, ms)}) }
		}
		step(4, "one that is there, restored earlier", missing("a", 1))
		step(5, "a missing one before all others", missing("e", 5))
		step(5, "the head moved to later again", func() error {
			return idx.Move(ctx, []core.Move{{ID: "e", From: at(5), To: at(400)}})
		})
		step(5, "a remove", func() error { return idx.Remove(ctx, []core.Entry{entry("b", 10)}) })
		cancel()
		wg.Wait()
	})
}

func TestADoneContextChangesNothing(t *testing.T) {
	idx := heapindex.New()
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, idx.Add(ctx, []core.Entry{entry("b", 1)}), context.Canceled)
	require.ErrorIs(t, idx.Add(ctx, nil), context.Canceled)
	require.ErrorIs(t, idx.AddMissing(ctx, []core.Entry{entry("b", 1)}), context.Canceled)
	require.ErrorContains(t, idx.AddMissing(ctx, nil), "heapindex: add missing: ")
	require.ErrorIs(t, idx.Move(ctx, []core.Move{{ID: "a", From: at(1), To: at(2)}}), context.Canceled)
	require.ErrorIs(t, idx.Remove(ctx, []core.Entry{entry("a", 1)}), context.Canceled)
	_, err := idx.Due(ctx, at(5), 5)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = idx.Take(ctx, at(5), at(9), 5)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "heapindex: take: ")
	got, err := idx.Due(t.Context(), at(5), 5)
	require.NoError(t, err)
	require.Equal(t, []core.Entry{entry("a", 1)}, got)
}

func TestTheLifeOfEntriesAllocatesTheTakenIDsOnly(t *testing.T) {
	idx := heapindex.New()
	batch := make([]core.Entry, 100)
	for i := range batch {
		batch[i] = entry(fmt.Sprint("id-", i), i)
	}
	gone := make([]core.Entry, 0, len(batch))
	perBatch := testing.AllocsPerRun(20, func() {
		_ = idx.Add(t.Context(), batch)
		ids, _, _ := idx.Take(t.Context(), at(1000), at(2000), len(batch))
		gone = gone[:0]
		for _, id := range ids {
			gone = append(gone, core.Entry{ID: id, Due: at(2000)})
		}
		_ = idx.Remove(t.Context(), gone)
	})
	require.Len(t, gone, len(batch))
	require.Zero(t, idx.Len())
	require.Equal(t, 1.0, perBatch, "Take's slice")
}

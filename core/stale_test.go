package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// https://github.com/tastyware/streaq/issues/92: aborted tasks stood in Redis until 2037.
func TestWhatIsCancelledLeavesTheIndexAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		p.schedule(t, 2000, time.Now().Add(30*24*time.Hour))
		ids := make([]core.ID, 1500)
		for i := range ids {
			ids[i] = core.ID(fmt.Sprint(i))
		}
		fates, err := p.prod.Cancel(t.Context(), append(ids, "unknown")...)
		require.NoError(t, err)
		assert.Equal(t, core.Cancelled, fates[0])
		assert.Equal(t, core.Unknown, fates[1500])
		assert.Equal(t, 500, p.idx.Len(), "entries")

		idx := &lossyIndex{TimeIndex: p.idx}
		prod, err := core.NewProducer(idx, p.store, core.ProducerOptions{Logger: quiet()})
		require.NoError(t, err)
		idx.away.Store(true)
		fates, err = prod.Cancel(t.Context(), "1999")
		require.NoError(t, err, "an index that is away costs no cancellation")
		assert.Equal(t, []core.Fate{core.Cancelled}, fates)
	})
}

// countedIndex is an index that counts, and may not be listed.
type countedIndex struct {
	*heapindex.Index
	lists   atomic.Int64
	removed atomic.Int64
	deaf    atomic.Bool
}

func (x *countedIndex) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	x.lists.Add(1)
	if x.deaf.Load() {
		return nil, errAway
	}
	return x.Index.List(ctx, after, before, limit)
}

func (x *countedIndex) Remove(ctx context.Context, entries []core.Entry) error {
	x.removed.Add(int64(len(entries)))
	return x.Index.Remove(ctx, entries)
}

func TestAHorizonSweepRemovesEntriesOfEndedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := &countedIndex{Index: p.idx}
		far := time.Now().Add(30 * 24 * time.Hour)
		p.schedule(t, 100, far)
		var stale []core.Entry
		for i := range 120_000 {
			stale = append(stale, core.Entry{ID: core.ID(fmt.Sprint("ended", i)), Due: core.CeilMilli(far.Add(time.Duration(i%7) * time.Hour))})
		}
		require.NoError(t, idx.Add(t.Context(), stale))
		hold := make(chan struct{})
		h := core.HandlerFunc(func(context.Context, *core.Job) error { <-hold; return nil })
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "running", Due: time.Now()}))
		idx.deaf.Store(true)
		stop := running(t, newScheduler(t, idx, p.store, h, core.Options{}))
		time.Sleep(5 * time.Minute)
		assert.Equal(t, 120_101, idx.Len(), "an index that can't be listed works as ever")
		idx.deaf.Store(false)
		for range 10 {
			lists, removed := idx.lists.Load(), idx.removed.Load()
			time.Sleep(30 * time.Second)
			assert.LessOrEqual(t, idx.lists.Load()-lists, int64(12), "calls of List in a sweep")
			assert.LessOrEqual(t, idx.removed.Load()-removed, int64(50_000), "removed by a sweep")
		}
		assert.EqualValues(t, 120_000, idx.removed.Load())
		assert.Equal(t, 101, idx.Len(), "what is live stays, also what runs")
		close(hold)
		require.NoError(t, stop())
	})
}

// A row of the user's own that looks due in the store may back off for long in the
// index alone; one that his statement has ended may not be told from it by its time.
func TestAHorizonSweepKeepsBackOffsThatOnlyTheIndexHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx, s := &stepStore{}, heapindex.New(), &starts{}
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			if s.note(job.Task.ID); job.Task.ID == "long" {
				time.Sleep(10 * time.Minute)
			}
			return core.RetryAt(time.Now().Add(time.Hour), errors.New("no luck"))
		})
		start := time.Now()
		store.put(start, "backs off", "long")
		store.put(start.Add(24*time.Hour), "tomorrow", "ended by the user")
		track(t, idx, store, start, "backs off", "long")
		track(t, idx, store, start.Add(24*time.Hour), "tomorrow", "ended by the user")
		for range 2 {
			running(t, newScheduler(t, idx, store, h, core.Options{}))
		}
		time.Sleep(30 * time.Second)
		store.do("ended by the user")
		time.Sleep(40 * time.Minute)
		assert.Equal(t, 3, idx.Len(), "all but the one that has ended")
		assert.Len(t, s.of("backs off"), 1)
		assert.Len(t, s.of("long"), 1)
		time.Sleep(22 * time.Minute)
		require.Len(t, s.of("backs off"), 2)
	})
}

// An id that is used again while sweeps look for what has ended runs on time all the
// same, and no entry stays behind.
func TestIdsThatAreUsedAgainDuringSweepsRunOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		runs := &starts{}
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error { runs.note(job.Task.ID); return nil })
		running(t, newScheduler(t, p.idx, p.store, h, core.Options{HorizonSweep: 2 * time.Second, NearSweep: time.Second}))
		due := map[core.ID]time.Time{}
		for i := range 3000 {
			id := core.ID(fmt.Sprint("n", i%300))
			ctx := t.Context()
			_, err := p.prod.Cancel(ctx, id)
			require.NoError(t, err)
			at := time.Now().Add(time.Duration(i%13)*time.Minute + 500*time.Millisecond)
			if err := p.prod.Schedule(ctx, core.Task{ID: id, Due: at}); err == nil {
				due[id] = at
			}
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(15 * time.Minute)
		for id, at := range due {
			all := runs.of(id)
			require.NotEmpty(t, all, id)
			assert.WithinRange(t, all[len(all)-1], at, at.Add(200*time.Millisecond), id)
		}
		assert.Zero(t, p.idx.Len())
	})
}

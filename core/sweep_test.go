package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// refuser refuses ids that start with "locked".
type refuser struct{ hookedStore }

func (s *refuser) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	open := slices.DeleteFunc(slices.Clone(ids), func(id core.ID) bool { return strings.HasPrefix(string(id), "locked") })
	got, err := s.hookedStore.Claim(ctx, open, lease)
	if err != nil {
		return nil, err
	}
	var all []core.Claimed
	for _, id := range ids {
		if strings.HasPrefix(string(id), "locked") {
			all = append(all, core.Claimed{ID: id, Verdict: core.Refused})
			continue
		}
		all = append(all, got[0])
		got = got[1:]
	}
	return all, nil
}

// https://github.com/riverqueue/river/pull/1318
func TestRefusedRowsDontHideThoseBehindThemFromTheSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &refuser{hookedStore{Store: p.store}}
		idx := &lossyIndex{TimeIndex: p.idx}
		idx.swallow.Store(true)
		r := &recorder{}
		stop := running(t, newScheduler(t, idx, store, r, core.Options{}))
		old := time.Now().Add(-time.Minute)
		for i := range 2000 {
			require.NoError(t, p.store.Insert(t.Context(), core.Call{ID: "c", Now: old}, []core.Task{{ID: core.ID(fmt.Sprint("locked", i)), Due: core.CeilMilli(old)}}))
		}
		time.Sleep(90 * time.Second)
		start := time.Now()
		require.NoError(t, p.store.Insert(t.Context(), core.Call{ID: "d", Now: start}, []core.Task{{ID: "free", Due: core.CeilMilli(start)}}))
		for r.get("free") == 0 && time.Since(start) < 3*time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		assert.Less(t, time.Since(start), 6*time.Second)
		require.NoError(t, stop())
	})
}

// Another process's producer has an index of its own.
func TestTasksScheduledElsewhereDontCauseReadingAfterReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		var far []core.Task
		for i := range 20_000 {
			far = append(far, core.Task{ID: core.ID(fmt.Sprint("far", i)), Due: time.Now().Add(24 * time.Hour)})
		}
		require.NoError(t, p.prod.Schedule(t.Context(), far...))
		stop := running(t, newScheduler(t, heapindex.New(), store, &recorder{}, core.Options{}))
		time.Sleep(10 * time.Second)
		before := store.count("waiting")
		for i := range 3000 {
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}))
			time.Sleep(100 * time.Millisecond)
		}
		n := store.count("waiting") - before
		// One page a second, and 21 for all at most each half minute in the end.
		assert.Less(t, n, 300+15*21, "pages in five minutes")
		require.NoError(t, stop())
	})
}

// https://github.com/riverqueue/river/issues/59: an old snapshot keeps a database
// from cleaning up, and each reading from the start walks over all that was done.
func TestSweepsThatAreSlowFromTheStartMostlyBeginAMinuteAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &slowStart{Store: p.store}
		idx := &lossyIndex{TimeIndex: p.idx}
		idx.swallow.Store(true)
		r := &recorder{}
		stop := running(t, newScheduler(t, idx, store, r, core.Options{HorizonSweep: time.Hour}))
		old := time.Now().Add(-time.Hour)
		time.Sleep(time.Minute)
		whole := store.whole.Load()
		require.NoError(t, p.store.Insert(t.Context(), core.Call{ID: "a", Now: time.Now()}, []core.Task{{ID: "recent", Due: core.CeilMilli(time.Now())}}))
		time.Sleep(5 * time.Second)
		assert.Equal(t, 1, r.get("recent"), "what is due now is found as ever")
		require.NoError(t, p.store.Insert(t.Context(), core.Call{ID: "b", Now: time.Now()}, []core.Task{{ID: "old", Due: core.CeilMilli(old)}}))
		time.Sleep(14 * time.Second)
		assert.Equal(t, 1, r.get("old"), "what is older is found too, later")
		assert.LessOrEqual(t, whole, int64(13), "readings from the start in a minute, of half a second each")
		assert.Greater(t, whole, int64(8))
		require.NoError(t, stop())
	})
}

func TestSweepsOfAStoreThatIsSlowAllOverStillReadFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &slowStart{Store: p.store, all: true}
		stop := running(t, newScheduler(t, p.idx, store, &recorder{}, core.Options{HorizonSweep: time.Hour}))
		time.Sleep(time.Minute)
		assert.Greater(t, store.whole.Load(), int64(18), "every other one, of half a second and a second after it each")
		require.NoError(t, stop())
	})
}

// slowStart takes half a second for what it reads from the start of time, or for all.
type slowStart struct {
	core.Store
	all   bool
	whole atomic.Int64
}

func (s *slowStart) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if after.Due.IsZero() {
		s.whole.Add(1)
	}
	if after.Due.IsZero() || s.all {
		time.Sleep(500 * time.Millisecond)
	}
	return s.Store.Waiting(ctx, now, after, before, limit)
}

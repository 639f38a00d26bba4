package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// withinALease bounds when a sweep brings back what is overdue: the lease of 30 s,
// the grace of 2 s and the margin of 3 s after a near sweep.
const withinALease = 36*time.Second + 500*time.Millisecond

// starts notes when handlers are called.
type starts struct {
	mu sync.Mutex
	at map[core.ID][]time.Time
}

func (s *starts) note(id core.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[core.ID][]time.Time{}
	}
	s.at[id] = append(s.at[id], time.Now())
	return len(s.at[id])
}

func (s *starts) of(id core.ID) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[id]
}

// doing is a handler that does its step at once.
func (s *starts) doing(store *stepStore) core.Handler {
	return core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		s.note(job.Task.ID)
		store.do(job.Task.ID)
		return nil
	})
}

func track(t *testing.T, idx core.TimeIndex, store core.Claimer, due time.Time, ids ...core.ID) {
	t.Helper()
	prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	for _, id := range ids {
		require.NoError(t, prod.Track(t.Context(), core.Entry{ID: id, Due: due}))
	}
}

// retried runs a task that fails twice, on so many schedulers, and returns when it
// was started.
func retried(t *testing.T, idx core.TimeIndex, backoff time.Duration, processes int) []time.Time {
	t.Helper()
	store, s := &stepStore{}, &starts{}
	h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		if s.note(job.Task.ID) < 3 {
			return errors.New("no luck")
		}
		store.do(job.Task.ID)
		return nil
	})
	due := time.Now().Add(time.Second)
	store.put(due, "1")
	track(t, idx, store, due, "1")
	for range processes {
		running(t, newScheduler(t, idx, store, h, core.Options{Backoff: func(int) time.Duration { return backoff }}))
	}
	time.Sleep(3 * backoff)
	at := s.of("1")
	require.Len(t, at, 3)
	return at
}

func TestSweepsDontCutABackoffThatOnlyTheIndexHolds(t *testing.T) {
	for _, c := range []struct {
		name      string
		backoff   time.Duration
		processes int
	}{
		{"longer than a lease", time.Hour, 2},
		{"within a lease", 25 * time.Second, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := retried(t, heapindex.New(), c.backoff, c.processes)
				for i := range 2 {
					assert.WithinRange(t, at[i+1], at[i].Add(c.backoff), at[i].Add(c.backoff+100*time.Millisecond))
				}
			})
		})
	}
}

// takerOnly is an index that can't restore.
type takerOnly struct {
	core.TimeIndex
}

func (x takerOnly) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	return x.TimeIndex.(core.Taker).Take(ctx, now, until, limit)
}

func TestAFailedRestoreIsTriedAgainByTheNextSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := &stepStore{}, &starts{}
		idx := &restoring{Index: heapindex.New()}
		idx.away.Store(true)
		stop := running(t, newScheduler(t, idx, store, s.doing(store), core.Options{}))
		store.put(time.Now().Add(-time.Hour), "1", "2")
		track(t, idx, store, time.Now().Add(time.Hour), "2") // the index has another time, and keeps it
		time.Sleep(10 * time.Second)
		idx.away.Store(false)
		back := time.Now()
		time.Sleep(time.Minute)
		at := s.of("1")
		require.Len(t, at, 1)
		assert.WithinRange(t, at[0], back.Add(30*time.Second), back.Add(withinALease+5*time.Second))
		assert.Empty(t, s.of("2"), "it stands where it stood")
		require.NoError(t, stop())
	})
}

// restoring is an index whose AddMissing may fail.
type restoring struct {
	*heapindex.Index
	away atomic.Bool
}

func (x *restoring) AddMissing(ctx context.Context, entries []core.Entry) error {
	if x.away.Load() {
		return errAway
	}
	return x.Index.AddMissing(ctx, entries)
}

func TestRowsInHandThatLookDueAreNotStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx, s := &stepStore{}, heapindex.New(), &starts{}
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			s.note(job.Task.ID)
			time.Sleep(5 * time.Minute)
			store.do(job.Task.ID)
			return nil
		})
		due := time.Now().Add(5 * time.Second)
		store.put(due, "1", "2", "3")
		track(t, idx, store, due, "1", "2") // and 3 is found by the sweeps of all
		for range 3 {
			running(t, newScheduler(t, idx, store, h, core.Options{}))
		}
		time.Sleep(10 * time.Minute)
		for _, id := range []core.ID{"1", "2", "3"} {
			assert.Len(t, s.of(id), 1, id)
		}
		assert.Len(t, store.settled(), 3)
	})
}

func TestLostEntriesOfOverdueRowsComeBackWithinALease(t *testing.T) {
	for _, horizon := range []time.Duration{0, 2 * time.Second} {
		t.Run(fmt.Sprint("horizon ", horizon), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, s := &stepStore{}, &starts{}
				idx := lossyRestorer{&lossyIndex{TimeIndex: heapindex.New()}}
				idx.swallow.Store(true)
				opt := core.Options{Horizon: horizon}
				if horizon > 0 {
					opt.HorizonSweep = horizon / 2
				}
				stop := running(t, newScheduler(t, idx, store, s.doing(store), opt))
				store.put(time.Now().Add(5*time.Second), "1")
				time.Sleep(10 * time.Second)
				idx.swallow.Store(false)
				back := time.Now()
				time.Sleep(10 * time.Second)
				assert.Zero(t, store.claimed(), "not claimed directly, nor soon: somebody might have it in hand")
				time.Sleep(time.Minute)
				at := s.of("1")
				require.Len(t, at, 1)
				assert.WithinRange(t, at[0], back.Add(30*time.Second), back.Add(withinALease))
				require.NoError(t, stop())
			})
		})
	}
}

func TestLostEntriesOfManyOverdueRowsComeBackAfterAHorizonSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := &stepStore{}, &starts{}
		idx := lossyRestorer{&lossyIndex{TimeIndex: heapindex.New()}}
		var ids []core.ID
		for i := range 2000 {
			ids = append(ids, core.ID(fmt.Sprint("n", i)))
		}
		stop := running(t, newScheduler(t, idx, store, s.doing(store), core.Options{}))
		time.Sleep(time.Second)
		store.put(time.Now().Add(-time.Hour), ids...)
		time.Sleep(time.Minute + withinALease + time.Second)
		for _, id := range ids {
			require.Len(t, s.of(id), 1, id)
		}
		require.NoError(t, stop())
	})
}

func TestFutureRowsThatNobodyTrackedRunOnTimeBehindManyOverdueOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx, s := &stepStore{}, heapindex.New(), &starts{}
		for i := range 2000 {
			store.put(time.Now().Add(-time.Hour), core.ID(fmt.Sprint("old", i)))
		}
		stop := running(t, newScheduler(t, idx, store, s.doing(store), core.Options{}))
		time.Sleep(5 * time.Second) // the first horizon sweep is over
		due := time.Now().Add(10 * time.Second)
		store.put(due, "1")
		time.Sleep(20 * time.Second)
		at := s.of("1")
		require.Len(t, at, 1)
		assert.WithinRange(t, at[0], due, due.Add(20*time.Millisecond))
		require.NoError(t, stop())
	})
}

func TestWithoutTheIndexNothingUndatedIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := &stepStore{}, &starts{}
		idx := lossyRestorer{&lossyIndex{TimeIndex: heapindex.New()}}
		idx.away.Store(true)
		store.put(time.Now(), "1")
		stop := running(t, newScheduler(t, idx, store, s.doing(store), core.Options{}))
		time.Sleep(10 * time.Minute)
		assert.Zero(t, store.claimed())
		idx.away.Store(false)
		time.Sleep(withinALease + 5*time.Second) // and the back-off of a failing index
		assert.Len(t, s.of("1"), 1)
		require.NoError(t, stop())
	})
}

func TestTickLeavesOverdueRowsToTheIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx, s := &stepStore{}, heapindex.New(), &starts{}
		now := time.Now()
		store.put(now.Add(-time.Minute), "1", "2")
		store.put(now.Add(2*time.Second), "3")
		track(t, idx, store, now.Add(-time.Minute), "1")
		sched := newScheduler(t, idx, store, s.doing(store), core.Options{})
		for _, step := range []struct {
			at   time.Duration
			want core.ID
		}{{0, "1"}, {2 * time.Second, "3"}, {withinALease, "2"}} {
			n, err := sched.Tick(t.Context(), now.Add(step.at))
			require.NoError(t, err)
			assert.Equal(t, 1, n, step.at)
			assert.Len(t, s.of(step.want), 1, step.at)
		}
	})
}

// datedAfterAll has the method and says no.
type datedAfterAll struct{ core.Store }

func (datedAfterAll) Undated() bool { return false }

func TestAStoreThatSaysItIsDatedIsClaimedDirectly(t *testing.T) {
	p := newParts(t)
	idx := &lossyIndex{TimeIndex: p.idx}
	idx.away.Store(true)
	now := time.Now()
	require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: now}))
	n, _ := newScheduler(t, idx, datedAfterAll{p.store}, &recorder{}, core.Options{}).Tick(t.Context(), now.Add(time.Minute))
	assert.Equal(t, 1, n)
}

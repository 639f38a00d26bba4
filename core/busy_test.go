package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// busyOnce answers ErrBusy once for the id "busy".
type busyOnce struct {
	core.Store
	n    atomic.Int32
	then func()
}

func (s *busyOnce) once(n int, at func(int) core.ID, rest func(keep []int) error) error {
	keep := make([]int, 0, n)
	busy := -1
	for i := range n {
		if at(i) == "busy" && s.n.Add(1) == 1 {
			busy = i
			continue
		}
		keep = append(keep, i)
	}
	if err := rest(keep); err != nil {
		return err
	}
	if busy >= 0 {
		s.then()
		return core.NewBatchError([]core.ItemError{{Index: busy, ID: "busy", Err: core.ErrBusy}})
	}
	return nil
}

func pick[T any](all []T, at []int) []T {
	var out []T
	for _, i := range at {
		out = append(out, all[i])
	}
	return out
}

func (s *busyOnce) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return s.once(len(tasks), func(i int) core.ID { return tasks[i].ID }, func(keep []int) error {
		return s.Store.Insert(ctx, call, pick(tasks, keep))
	})
}

func (s *busyOnce) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	fates := make([]core.Fate, len(ids))
	err := s.once(len(ids), func(i int) core.ID { return ids[i] }, func(keep []int) error {
		got, err := s.Store.Cancel(ctx, call, pick(ids, keep))
		for k, i := range keep {
			fates[i] = got[k]
		}
		return err
	})
	return fates, err
}

func (s *busyOnce) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	return s.once(len(moves), func(i int) core.ID { return moves[i].ID }, func(keep []int) error {
		return s.Store.Reschedule(ctx, call, pick(moves, keep))
	})
}

// What took effect has gone on since: to repeat it could store it again.
func TestProducerRepeatsOnlyItemsWhoseRowsWereLocked(t *testing.T) {
	store := &busyOnce{Store: claim.NewMemory(claim.MemoryOptions{DeleteFinished: true})}
	idx := heapindex.New()
	r := &recorder{}
	s := newScheduler(t, idx, store, r, core.Options{})
	prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	run := func() { _, err := s.Tick(t.Context(), time.Now().Add(time.Minute)); assert.NoError(t, err) }
	now := time.Now()

	t.Run("insert", func(t *testing.T) {
		store.n.Store(0)
		store.then = run
		require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "a", Due: now}, core.Task{ID: "busy", Due: now}))
		run()
		assert.Equal(t, 1, r.get("a"))
		assert.Equal(t, 1, r.get("busy"))
	})
	t.Run("cancel", func(t *testing.T) {
		store.n.Store(1)
		require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "a", Due: now}, core.Task{ID: "busy", Due: now}))
		store.n.Store(0)
		store.then = func() {}
		fates, err := prod.Cancel(t.Context(), "a", "busy")
		require.NoError(t, err)
		assert.Equal(t, []core.Fate{core.Cancelled, core.Cancelled}, fates)
	})
	t.Run("reschedule", func(t *testing.T) {
		store.n.Store(1)
		require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "a", Due: now.Add(time.Hour)}, core.Task{ID: "busy", Due: now.Add(time.Hour)}))
		store.n.Store(0)
		store.then = run
		require.NoError(t, prod.Reschedule(t.Context(), core.Move{ID: "a", To: now}, core.Move{ID: "busy", To: now}))
	})
}

// lockedSettle is a store in which the row to be settled is always locked.
type lockedSettle struct {
	*hookedStore
	n *atomic.Int32
}

func (s lockedSettle) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	s.n.Add(1)
	return core.NewBatchError([]core.ItemError{{Index: 0, ID: list[0].Grant.ID, Err: core.ErrBusy}})
}

func TestLockedRowIsSettledEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		var n atomic.Int32
		store := lockedSettle{&hookedStore{Store: p.store}, &n}
		stop := running(t, newScheduler(t, p.idx, store, &recorder{}, core.Options{}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		time.Sleep(20 * time.Second)
		assert.Less(t, n.Load(), int32(200), "settles of a locked row in 20 s")
		err := stop()
		assert.NotContains(t, err.Error(), "<nil>")
	})
}

// A result waits for company when there is little to do, and no longer than until
// there is a full batch.
func TestResultsThatAreAFullBatchDontWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20_000
		p := newParts(t)
		p.schedule(t, n, time.Now())
		began := time.Now()
		var settled atomic.Int64
		var took time.Duration
		stop := running(t, newScheduler(t, p.idx, p.store, &recorder{}, core.Options{Slots: 2000, Observer: core.Observer{
			Settled: func(core.Settlement, error) {
				if settled.Add(1) == n {
					took = time.Since(began)
				}
			},
		}}))
		time.Sleep(5 * time.Second)
		require.NoError(t, stop())
		assert.EqualValues(t, n, settled.Load())
		assert.LessOrEqual(t, took, 40*time.Millisecond, "the bubble's time passes in waits only")
	})
}

// What is done leaves the memory, also when nothing follows it.
func TestAnIdleSchedulerKeepsNoJobThatItHasSettled(t *testing.T) {
	const n = 300
	p := newParts(t)
	due := time.Now().Add(100 * time.Millisecond)
	p.schedule(t, n, due)
	var mu sync.Mutex
	var jobs []weak.Pointer[core.Job]
	running(t, p.scheduler(t, core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		mu.Lock()
		defer mu.Unlock()
		jobs = append(jobs, weak.Make(job))
		return nil
	}), core.Options{Slots: 2 * n}))
	kept := func() (kept int) {
		runtime.GC()
		mu.Lock()
		defer mu.Unlock()
		for _, job := range jobs {
			if job.Value() != nil {
				kept++
			}
		}
		return kept + n - len(jobs)
	}
	assert.Eventually(t, func() bool { return kept() == 0 }, 10*time.Second, 100*time.Millisecond, "jobs that are in memory, or have not run")
}

// A try may have stored the task although its answer was lost; a row that is locked
// since then, by whoever runs it, must not be told as a task that was refused.
func TestARowThatIsLockedAfterALostAnswerIsOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		tries := 0
		store.set(func(op string, call func() error) error {
			if op != "insert" {
				return call()
			}
			if tries++; tries > 1 {
				return core.NewBatchError([]core.ItemError{{Index: 0, ID: "a", Err: core.ErrBusy}})
			}
			require.NoError(t, call())
			return errAway
		})
		prod, err := core.NewProducer(p.idx, store, core.ProducerOptions{Logger: quiet()})
		require.NoError(t, err)
		err = prod.Schedule(t.Context(), core.Task{ID: "a", Due: time.Now()})
		var unknown *core.OutcomeError
		require.ErrorAs(t, err, &unknown)
		assert.Greater(t, tries, 2)

		store.set(nil)
		assert.NoError(t, prod.ScheduleCall(t.Context(), unknown.Call, core.Task{ID: "a", Due: time.Now()}), "the repeat finds its own task")

		tries = 1 // no answer was lost
		store.set(func(op string, call func() error) error {
			if op != "insert" {
				return call()
			}
			return core.NewBatchError([]core.ItemError{{Index: 0, ID: "b", Err: core.ErrBusy}})
		})
		err = prod.Schedule(t.Context(), core.Task{ID: "b", Due: time.Now()})
		require.ErrorIs(t, err, core.ErrBusy)
		assert.False(t, errors.As(err, &unknown))
	})
}

// lockedRows is a store in which somebody's transaction has locked the rows with ids that
// start with "locked", after their claims.
type lockedRows struct{ core.Store }

func (s lockedRows) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	var locked []core.ItemError
	var free []core.Settlement
	for i, x := range list {
		if strings.HasPrefix(string(x.Grant.ID), "locked") {
			locked = append(locked, core.ItemError{Index: i, ID: x.Grant.ID, Err: core.ErrBusy})
		} else {
			free = append(free, x)
		}
	}
	if err := s.Store.Settle(ctx, now, free); err != nil {
		return err
	}
	return core.NewBatchError(locked)
}

func TestResultsOnLockedRowsDontStopClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		r := &recorder{}
		scheduler := newScheduler(t, p.idx, lockedRows{p.store}, r, core.Options{Slots: 10})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- scheduler.Run(ctx) }()
		for i := range 600 { // more than Slots and a batch
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint("locked", i)), Due: time.Now()}))
		}
		time.Sleep(5 * time.Second)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "good", Due: time.Now()}))
		time.Sleep(5 * time.Second)
		assert.Positive(t, r.get("good"))
		stop()
		require.Error(t, <-ended) // 600 results are not recorded
	})
}

// A failover comes upon a call part of which has taken effect.
func TestACallThatWasDoneInPartIsNeverToldAsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &turning{Memory: claim.NewMemory(claim.MemoryOptions{})}
		prod, err := core.NewProducer(heapindex.New(), &busyThen{store}, core.ProducerOptions{Logger: quiet()})
		require.NoError(t, err)
		err = prod.Schedule(t.Context(), due("a"), due("b"))
		var unknown *core.OutcomeError
		require.ErrorAs(t, err, &unknown)
		require.NotErrorIs(t, err, core.ErrNotDone)
		_, ok := store.Task("a")
		require.True(t, ok)
	})
}

// busyThen is a store that stores the first of two tasks, as the other one's row is
// locked, and is read-only from then on.
type busyThen struct{ *turning }

func (s *busyThen) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if len(tasks) == 1 {
		return errReadOnly
	}
	if err := s.turning.Insert(ctx, call, tasks[:1]); err != nil {
		return err
	}
	return core.NewBatchError([]core.ItemError{{Index: 1, ID: tasks[1].ID, Err: core.ErrBusy}})
}

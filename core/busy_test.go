package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

func (s *busyOnce) Cancel(ctx context.Context, now time.Time, ids []core.ID) ([]core.Fate, error) {
	fates := make([]core.Fate, len(ids))
	err := s.once(len(ids), func(i int) core.ID { return ids[i] }, func(keep []int) error {
		got, err := s.Store.Cancel(ctx, now, pick(ids, keep))
		for k, i := range keep {
			fates[i] = got[k]
		}
		return err
	})
	return fates, err
}

func (s *busyOnce) Reschedule(ctx context.Context, now time.Time, moves []core.Move) error {
	return s.once(len(moves), func(i int) core.ID { return moves[i].ID }, func(keep []int) error {
		return s.Store.Reschedule(ctx, now, pick(moves, keep))
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
		var tasks []core.Task
		for i := range n {
			tasks = append(tasks, core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()})
		}
		require.NoError(t, p.prod.Schedule(t.Context(), tasks...))
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

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

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// A worker that can't reach its store any more stands for a crashed one: its
// leases lapse.
func TestCrashedWorkersTasksAreTakenOverAfterLeaseAndGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		cut := &hookedStore{Store: p.store}
		began := make(chan core.Grant, 1)
		var cause atomic.Value
		stuck := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			began <- job.Grant
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return nil // claims success, too late
		})
		opt := core.Options{Lease: 3 * time.Second}
		var refused atomic.Int32
		optA := opt
		optA.Observer.Settled = func(_ core.Settlement, err error) {
			if errors.Is(err, core.ErrLeaseLost) {
				refused.Add(1)
			}
		}
		stopA := running(t, newScheduler(t, p.idx, cut, stuck, optA))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		first := <-began
		granted := time.Now()
		cut.set(failing("claim", "extend", "settle", "waiting"))

		again := make(chan *core.Job, 1)
		stopB := running(t, newScheduler(t, heapindex.New(), p.store, core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			again <- job
			return nil
		}), opt))
		job := <-again
		took := time.Since(granted)
		assert.GreaterOrEqual(t, took, 5*time.Second, "before lease + grace")
		assert.Less(t, took, 7*time.Second, "lease 3 s + grace 2 s + sweep")
		assert.Greater(t, job.Grant.Token, first.Token)
		assert.Equal(t, 1, job.Crashes)
		assert.Equal(t, 0, job.Failures())
		require.ErrorIs(t, cause.Load().(error), core.ErrLeaseLost, "handler's ctx is cancelled before the lease ends")

		cut.set(nil) // back: the late completion is refused
		time.Sleep(20 * time.Second)
		assert.EqualValues(t, 1, refused.Load())
		require.NoError(t, stopA())
		require.NoError(t, stopB())
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.DoneState, row.Status)
		assert.Equal(t, job.Grant.Token, row.Token)
	})
}

func TestLongHandlersKeepTheirLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		r := &recorder{}
		h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				t.Error("cancelled:", context.Cause(ctx))
			}
			return r.Handle(ctx, job)
		})
		opt := core.Options{Lease: 2 * time.Second}
		stop1 := running(t, p.scheduler(t, h, opt))
		stop2 := running(t, p.scheduler(t, h, opt))
		for i := range 50 {
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}))
		}
		time.Sleep(2 * time.Minute)
		require.NoError(t, stop1())
		require.NoError(t, stop2())
		ids, runs := r.total()
		assert.Equal(t, 50, ids)
		assert.Equal(t, 50, runs)
	})
}

func TestSchedulerGoesOnWithoutItsIndex(t *testing.T) {
	for name, fail := range map[string]func(*lossyIndex){
		"away":     func(x *lossyIndex) { x.away.Store(true) },
		"swallows": func(x *lossyIndex) { x.swallow.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				idx := &lossyIndex{TimeIndex: heapindex.New()}
				store := claim.NewMemory(claim.MemoryOptions{})
				fail(idx)
				prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
				require.NoError(t, err)
				r := &recorder{}
				var worst atomic.Int64
				h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
					worst.Store(max(worst.Load(), int64(job.Lateness())))
					return r.Handle(ctx, job)
				})
				s := newScheduler(t, idx, store, h, core.Options{})
				stop := running(t, s)
				start := time.Now()
				for i := range 300 {
					require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: start.Add(time.Duration(i) * 100 * time.Millisecond)}))
				}
				time.Sleep(time.Minute)
				if name == "away" {
					assert.False(t, s.Health().Index.OK)
				}
				require.NoError(t, stop())
				ids, runs := r.total()
				assert.Equal(t, 300, ids)
				assert.Equal(t, 300, runs)
				assert.Less(t, time.Duration(worst.Load()), 4*time.Second)
			})
		})
	}
}

func TestScheduleSucceedsWhenTheStoreHasTheTaskWhateverTheIndexSays(t *testing.T) {
	idx := &lossyIndex{TimeIndex: heapindex.New()}
	idx.away.Store(true)
	store := claim.NewMemory(claim.MemoryOptions{})
	var told int
	prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet(), Observer: core.Observer{NotIndexed: func(n int, _ error) { told += n }}})
	require.NoError(t, err)
	require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
	assert.Equal(t, 1, told)
	_, ok := store.Task("x")
	assert.True(t, ok)
}

// A settlement that fails once, some times, or for ever.
func TestSettlementsAreRepeatedAndAtLastLeftToOthers(t *testing.T) {
	for _, fails := range []int{1, 5, 1 << 30} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParts(t)
				store := &hookedStore{Store: p.store}
				var n atomic.Int32
				store.set(func(op string, call func() error) error {
					if op == "settle" && int(n.Add(1)) <= fails {
						return errAway
					}
					return call()
				})
				r := &recorder{}
				stop := running(t, newScheduler(t, p.idx, store, r, core.Options{Lease: 2 * time.Second}))
				require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
				time.Sleep(15 * time.Second)
				row, _ := p.store.Task("x")
				if fails < 10 {
					assert.Equal(t, claim.DoneState, row.Status)
					assert.Equal(t, 1, r.get("x"))
				} else {
					assert.Equal(t, claim.Running, row.Status)
					assert.Greater(t, r.get("x"), 1, "the lease ended, since heartbeats for it stopped, and it ran again")
					assert.Equal(t, row.Attempts-1, row.Crashes)
				}
				_ = stop()
			})
		})
	}
}

// The effect happens, the reply is lost.
func TestLostRepliesOfClaimAndSettleCostNoSecondRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		n := map[string]*atomic.Int32{"claim": {}, "settle": {}, "insert": {}}
		store.set(func(op string, call func() error) error {
			if err := call(); err != nil {
				return err
			}
			if n[op] != nil && n[op].Add(1)%2 == 1 {
				return errAway
			}
			return nil
		})
		prod, err := core.NewProducer(p.idx, store, core.ProducerOptions{Logger: quiet()})
		require.NoError(t, err)
		r := &recorder{}
		stop := running(t, newScheduler(t, p.idx, store, r, core.Options{}))
		for i := range 200 {
			require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}))
		}
		time.Sleep(2 * time.Minute)
		require.NoError(t, stop())
		ids, runs := r.total()
		assert.Equal(t, 200, ids)
		assert.Equal(t, 200, runs)
	})
}

func TestStoreThatIsAwayDoesNotEndRunAndIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		store.set(failing("claim", "extend", "settle", "waiting", "insert"))
		r := &recorder{}
		s := newScheduler(t, p.idx, store, r, core.Options{})
		stop := running(t, s)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		time.Sleep(time.Minute)
		h := s.Health()
		assert.False(t, h.Store.OK)
		require.ErrorIs(t, h.Store.Err, errAway)
		assert.Less(t, store.count("claim"), 120, "claims in a minute of outage")
		assert.Equal(t, 0, r.get("x"))
		store.set(nil)
		time.Sleep(15 * time.Second)
		assert.Equal(t, 1, r.get("x"))
		assert.True(t, s.Health().Store.OK)
		require.NoError(t, stop())
	})
}

// One id that can't be claimed must not keep others from being claimed.
func TestPoisonInABatchOfClaimsIsIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &poisonedStore{Store: p.store, poison: "37"}
		r := &recorder{}
		stop := running(t, newScheduler(t, p.idx, store, r, core.Options{}))
		for i := range 100 {
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}))
		}
		time.Sleep(5 * time.Minute)
		require.NoError(t, stop())
		ids, runs := r.total()
		assert.Equal(t, 99, ids)
		assert.Equal(t, 99, runs)
	})
}

type poisonedStore struct {
	core.Store
	poison core.ID
}

func (s *poisonedStore) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	for _, id := range ids {
		if id == s.poison {
			return nil, errAway
		}
	}
	return s.Store.Claim(ctx, ids, lease)
}

func TestTaskThatKillsItsWorkersIsDeadAtTheCrashLimit(t *testing.T) {
	p := newParts(t)
	now := time.Now()
	require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: now}))
	for i := range 3 { // claims that nobody settles
		now = now.Add(time.Minute)
		got, err := p.store.Claim(t.Context(), []core.ID{"x"}, core.Lease{
			Holder: fmt.Sprint("crash-", i), Now: core.FloorMilli(now), DueBy: core.FloorMilli(now), Until: core.CeilMilli(now.Add(time.Second))})
		require.NoError(t, err)
		require.Equal(t, core.Granted, got[0].Verdict)
	}
	r := &recorder{}
	s := newScheduler(t, p.idx, p.store, r, core.Options{MaxCrashes: 3})
	n, err := s.Tick(t.Context(), now.Add(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, 0, n)
	assert.Equal(t, 0, r.get("x"))
	row, _ := p.store.Task("x")
	assert.Equal(t, claim.DeadState, row.Status)
	assert.Contains(t, row.LastError, "3 times")
}

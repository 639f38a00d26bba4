package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
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

// While an index always has more to offer than there are slots, what it lacks must
// not wait for the end of that: overdue rows of before the start, a row whose entry
// was never written, and one whose entry stands too late.
func TestUnderAConstantBacklogWhatTheIndexLacksStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, old, sweep, lease = 50, 3000, 10 * time.Second, 4 * time.Second
		ctx, stop := context.WithCancel(t.Context())
		store, index := claim.NewMemory(claim.MemoryOptions{DeleteFinished: true}), heapindex.New()
		insert := func(call string, due time.Time, ids ...core.ID) {
			tasks := make([]core.Task, len(ids))
			for i, id := range ids {
				tasks[i] = core.Task{ID: id, Due: due}
			}
			require.NoError(t, store.Insert(ctx, core.Call{ID: call, Now: time.Now()}, tasks))
		}
		var overdue []core.ID
		for i := range old {
			overdue = append(overdue, core.ID(fmt.Sprint("old-", i)))
		}
		insert("old", time.Now().Add(-time.Hour), overdue...)

		var ran sync.Map // id -> when
		var fresh atomic.Int64
		s, err := core.New(index, store, core.HandlerFunc(func(_ context.Context, j *core.Job) error {
			if j.Task.Kind == "fresh" {
				fresh.Add(1)
			} else {
				ran.Store(j.Task.ID, time.Now())
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		}), core.Options{Slots: slots, HorizonSweep: sweep, Lease: lease, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		producer, err := core.NewProducer(index, store, core.ProducerOptions{})
		require.NoError(t, err)
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, s.Run(ctx)) })
		all.Go(func() { // a little more than the slots can do
			for i := 0; ctx.Err() == nil; i++ {
				tasks := make([]core.Task, slots)
				for k := range tasks {
					tasks[k] = core.Task{ID: core.ID(fmt.Sprintf("fresh-%d-%d", i, k)), Kind: "fresh", Due: time.Now()}
				}
				_ = producer.Schedule(ctx, tasks...) // ctx ends
				time.Sleep(98 * time.Millisecond)
			}
		})
		time.Sleep(3 * sweep)
		began := time.Now()
		insert("untold", began, "untold", "late")
		require.NoError(t, index.Add(ctx, []core.Entry{{ID: "late", Due: began.Add(time.Hour)}}))
		time.Sleep(5 * sweep)
		stop()
		all.Wait()

		for _, id := range append(overdue, "untold", "late") {
			when, ok := ran.Load(id)
			if assert.True(t, ok, "%s ran", id) && (id == "untold" || id == "late") {
				assert.LessOrEqual(t, when.(time.Time).Sub(began), 2*sweep+2*lease, "%s: how late", id)
			}
		}
		assert.Greater(t, fresh.Load(), int64(10_000), "there was a backlog all the while")
	})
}

// Processes that start together on a backlog would each read all of it, while the
// others take it.
func TestTheFirstReadingWaitsForABacklogButNotForAnEmptyIndex(t *testing.T) {
	for name, lost := range map[string]bool{"backlog": false, "empty index": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 20_000
				p := newParts(t)
				store := &hookedStore{Store: p.store}
				p.schedule(t, n, time.Now())
				idx := p.idx
				if lost {
					idx = heapindex.New()
				}
				var ran atomic.Int64
				stop := running(t, newScheduler(t, idx, store, core.HandlerFunc(func(context.Context, *core.Job) error {
					ran.Add(1)
					time.Sleep(400 * time.Millisecond)
					return nil
				}), core.Options{Slots: 2000}))
				time.Sleep(1900 * time.Millisecond)
				if lost {
					assert.GreaterOrEqual(t, store.count("waiting"), n/1000, "pages, from the start on")
				} else {
					assert.LessOrEqual(t, store.count("waiting"), 3, "pages, those of near sweeps")
				}
				time.Sleep(18 * time.Second)
				assert.GreaterOrEqual(t, store.count("waiting"), n/2000, "a backlog doesn't put it off for good")
				assert.EqualValues(t, n, ran.Load())
				require.NoError(t, stop())
			})
		})
	}
}

// Overdue rows whose entries another process has taken are on their way to a claim,
// unless it died before that. However seldom the index is looked at, they don't wait
// for the end of the lease.
func TestWhatAnotherProcessHasTakenIsClaimedOnlyIfItStaysUnclaimed(t *testing.T) {
	for _, poll := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Minute} {
		t.Run(poll.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 100
				p := newParts(t)
				store, r := &hookedStore{Store: p.store}, &recorder{}
				stop := running(t, newScheduler(t, p.idx, store, r, core.Options{Poll: poll, Ahead: -1}))
				time.Sleep(10 * time.Second)
				due := core.CeilMilli(time.Now().Add(10*time.Second + 300*time.Millisecond))
				p.schedule(t, n, due)
				time.Sleep(time.Until(due) - time.Millisecond)
				taken, _, err := p.idx.Take(t.Context(), due, due.Add(time.Hour), n)
				require.NoError(t, err)
				require.Len(t, taken, n)
				time.Sleep(901 * time.Millisecond)
				assert.Zero(t, store.count("claim"), "a near sweep has seen them, overdue by up to 0.9 s")
				time.Sleep(2500 * time.Millisecond)
				ids, runs := r.total()
				assert.Equal(t, [2]int{n, n}, [2]int{ids, runs})
				require.NoError(t, stop())
			})
		})
	}
}

// An index that takes what it is told and never offers it: each page of a sweep is
// claimed directly, a moment after it was seen.
func TestABacklogIsWorkedOffBesideAnIndexThatSwallowsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5000
		p := newParts(t)
		p.schedule(t, n, time.Now())
		time.Sleep(10 * time.Second)
		idx, r := &lossyIndex{TimeIndex: heapindex.New()}, &recorder{}
		idx.swallow.Store(true)
		stop := running(t, newScheduler(t, idx, p.store, r, core.Options{Slots: 1000}))
		time.Sleep(12 * time.Second)
		ids, runs := r.total()
		assert.Equal(t, [2]int{n, n}, [2]int{ids, runs})
		require.NoError(t, stop())
	})
}

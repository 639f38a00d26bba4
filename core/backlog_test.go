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

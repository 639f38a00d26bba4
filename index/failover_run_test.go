package index_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/index"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAFailoverIsATimeIndex(t *testing.T) {
	conformance.TestIndex(t, conformance.Index{
		New:      func(t *testing.T) core.TimeIndex { return failover(t, heapindex.New(), heapindex.New()) },
		Provides: conformance.IndexProvides{Taker: true, Watcher: true, Restorer: true, Detector: true, Lister: true},
	})
}

// Two processes share a primary that dies for good, or hangs, in mid-run; tasks
// come from a third one, which can't tell any index of them.
func TestWithThePrimaryGoneForGoodTasksRunOnTime(t *testing.T) {
	for name, state := range map[string]int32{"gone": gone, "hanging": hanging, "read-only": readOnly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runWithout(t, state) })
		})
	}
}

func runWithout(t *testing.T, state int32) {
	const tasks = 2_000
	store := claim.NewMemory(claim.MemoryOptions{})
	primary := newRemote()
	quiet := slog.New(slog.DiscardHandler)
	var mu sync.Mutex
	runs := map[core.ID]int{}
	var worst time.Duration
	handler := core.HandlerFunc(func(context.Context, *core.Job) error { return nil })
	observer := core.Observer{Started: func(job *core.Job, late time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		runs[job.Task.ID]++
		worst = max(worst, late)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var schedulers []*core.Scheduler
	for range 2 {
		x, err := index.Failover(primary, heapindex.New())
		require.NoError(t, err)
		s, err := core.New(x, store, handler, core.Options{Logger: quiet, Observer: observer})
		require.NoError(t, err)
		schedulers = append(schedulers, s)
		all.Go(func() { assert.NoError(t, s.Run(ctx)) })
	}
	producer, err := core.NewProducer(primary, store, core.ProducerOptions{Logger: quiet})
	require.NoError(t, err)
	for i := range tasks / 2 { // known beforehand: 50 a second from now on
		require.NoError(t, producer.Schedule(ctx, core.Task{ID: core.ID(fmt.Sprint("early-", i)), Due: time.Now().Add(time.Duration(i) * 20 * time.Millisecond)}))
	}
	time.Sleep(3 * time.Second)
	primary.state.Store(state)
	for i := range tasks / 2 { // and 50 a second that come at a second's notice
		require.NoError(t, producer.Schedule(ctx, core.Task{ID: core.ID(fmt.Sprint("late-", i)), Due: time.Now().Add(time.Second)}))
		time.Sleep(15 * time.Millisecond)
	}
	time.Sleep(30 * time.Second)
	for _, s := range schedulers {
		h := s.Health()
		assert.False(t, h.Index.OK)
		require.ErrorIs(t, h.Index.Err, index.ErrOnBackup)
		require.NoError(t, h.Ready())
		assert.WithinDuration(t, time.Now(), h.Swept, 2*time.Second)
	}
	mu.Lock()
	assert.Len(t, runs, tasks)
	for id, n := range runs {
		assert.Equal(t, 1, n, "%s", id)
	}
	assert.LessOrEqual(t, worst, 2*time.Second, "near sweep + 1 s")
	t.Logf("primary %d: latest start %v after due", state, worst)
	mu.Unlock()

	primary.state.Store(well)
	time.Sleep(10 * time.Second)
	for _, s := range schedulers {
		assert.True(t, s.Health().Index.OK, "it goes back by itself: %v", s.Health().Index.Err)
	}
	cancel()
	all.Wait()
}

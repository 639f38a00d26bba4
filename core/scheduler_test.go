package core_test

import (
	"context"
	"errors"
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

// parts is a pair of in-process parts with a producer.
type parts struct {
	idx   *heapindex.Index
	store *claim.Memory
	prod  *core.Producer
}

func newParts(t *testing.T) parts {
	t.Helper()
	p := parts{idx: heapindex.New(), store: claim.NewMemory(claim.MemoryOptions{})}
	var err error
	p.prod, err = core.NewProducer(p.idx, p.store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	return p
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (p parts) scheduler(t *testing.T, h core.Handler, opt core.Options) *core.Scheduler {
	t.Helper()
	if opt.Logger == nil {
		opt.Logger = quiet()
	}
	s, err := core.New(p.idx, p.store, h, opt)
	require.NoError(t, err)
	return s
}

// schedule schedules n tasks with the ids "0", "1" and so on.
func (p parts) schedule(t *testing.T, n int, due time.Time) {
	t.Helper()
	tasks := make([]core.Task, n)
	for i := range tasks {
		tasks[i] = core.Task{ID: core.ID(fmt.Sprint(i)), Due: due}
	}
	require.NoError(t, p.prod.Schedule(t.Context(), tasks...))
}

// running starts s and returns a func that stops it and waits.
func running(t *testing.T, s *core.Scheduler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func TestEveryTaskRunsOnceOnTheDot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		var mu sync.Mutex
		runs := map[core.ID]int{}
		var worst time.Duration
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			late := time.Since(job.Task.Due)
			mu.Lock()
			defer mu.Unlock()
			runs[job.Task.ID]++
			assert.GreaterOrEqual(t, late, time.Duration(0), "started early")
			worst = max(worst, late)
			return nil
		})
		stop := running(t, p.scheduler(t, h, core.Options{}))
		start := time.Now()
		var tasks []core.Task
		for i := range 1000 {
			tasks = append(tasks, core.Task{ID: core.ID(fmt.Sprint("t-", i)), Due: start.Add(time.Duration(i) * 7 * time.Millisecond)})
		}
		require.NoError(t, p.prod.Schedule(t.Context(), tasks...))
		time.Sleep(10 * time.Second)
		require.NoError(t, stop())
		assert.Len(t, runs, 1000)
		for id, n := range runs {
			assert.Equal(t, 1, n, id)
		}
		assert.Less(t, worst, 2*time.Millisecond, "lateness on a fake clock")
	})
}

func TestIdleSchedulerSleepsUntilAnEarlierTaskComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		started := make(chan time.Duration, 1)
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			started <- time.Since(job.Task.Due)
			return nil
		})
		stop := running(t, p.scheduler(t, h, core.Options{Poll: time.Hour}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "far", Due: time.Now().Add(time.Hour)}))
		time.Sleep(10 * time.Second)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "near", Due: time.Now().Add(300 * time.Millisecond)}))
		assert.Less(t, <-started, 2*time.Millisecond)
		require.NoError(t, stop())
	})
}

func TestFailuresAreRetriedThenDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		var runs atomic.Int32
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			runs.Add(1)
			assert.Equal(t, int(runs.Load()), job.Attempt)
			if job.Attempt == 2 {
				panic("boom\x00\xff")
			}
			return errors.New("no luck")
		})
		stop := running(t, p.scheduler(t, h, core.Options{Backoff: func(n int) time.Duration { return time.Duration(n) * time.Second }}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now(), MaxAttempts: 3}))
		time.Sleep(20 * time.Second)
		require.NoError(t, stop())
		assert.EqualValues(t, 3, runs.Load())
		row, ok := p.store.Task("x")
		require.True(t, ok)
		assert.Equal(t, claim.DeadState, row.Status)
	})
}

package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func TestNilFromAHandlerThatDidNotDoItsStepIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx, s, book := &stepStore{}, heapindex.New(), &starts{}, &logBook{}
		var mu sync.Mutex
		var failures []int
		var observed []error
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			if s.note(job.Task.ID) == 3 || job.Task.ID != "lazy" {
				store.do(job.Task.ID)
			}
			return nil
		})
		opt := core.Options{
			Logger: book.logger(),
			Backoff: func(n int) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, n)
				return time.Duration(n) * 10 * time.Second
			},
			Observer: core.Observer{Failed: func(op string, err error) { t.Errorf("%s: %v, but it is an answer", op, err) }, Settled: func(x core.Settlement, err error) {
				mu.Lock()
				defer mu.Unlock()
				if x.Grant.ID == "lazy" {
					observed = append(observed, err)
				}
			}},
		}
		sched, err := core.New(idx, store, h, opt)
		require.NoError(t, err)
		now := time.Now()
		store.put(now, "lazy", "good1", "good2")
		track(t, idx, store, now, "good1", "lazy", "good2")
		stop := running(t, sched)
		time.Sleep(5 * time.Second)
		ends := store.settled()
		require.Len(t, ends, 3, "those beside it are done, it is to be retried")
		for _, x := range ends {
			if x.Grant.ID != "lazy" {
				assert.Equal(t, core.Done, x.Outcome)
				continue
			}
			assert.Equal(t, core.Retry, x.Outcome)
			assert.Contains(t, x.Err, "order lazy is still open")
			assert.Contains(t, x.Err, core.ErrUnfinished.Error())
		}
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		at := s.of("lazy")
		require.Len(t, at, 3)
		assert.WithinDuration(t, at[0].Add(10*time.Second), at[1], 100*time.Millisecond)
		assert.WithinDuration(t, at[1].Add(20*time.Second), at[2], 100*time.Millisecond)
		assert.Equal(t, []int{1, 2}, failures)
		assert.Len(t, book.with("without having done its step"), 2)
		require.Len(t, observed, 5, "unfinished, retry, unfinished, retry, done")
		for i, want := range []bool{true, false, true, false, false} {
			assert.Equal(t, want, errors.Is(observed[i], core.ErrUnfinished), i)
		}
	})
}

func TestAStepThatIsNeverDoneEndsDead(t *testing.T) {
	store, idx := &stepStore{}, heapindex.New()
	h := core.HandlerFunc(func(context.Context, *core.Job) error { return nil })
	now := core.CeilMilli(time.Now())
	store.put(now, "lazy")
	track(t, idx, store, now, "lazy")
	s := newScheduler(t, idx, store, h, core.Options{MaxAttempts: 3, Backoff: func(int) time.Duration { return time.Second }})
	for i := range 5 { // the last one finds nothing
		_, err := s.Tick(t.Context(), now.Add(time.Duration(i)*10*time.Second))
		require.NoError(t, err)
	}
	ends := store.settled()
	require.Len(t, ends, 3)
	assert.Equal(t, core.DeadLetter, ends[2].Outcome)
	assert.Contains(t, ends[2].Err, "order lazy is still open")
}

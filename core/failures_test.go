package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func TestFailuresThatTheStoreDoesNotCountAreCountedInTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx := &stepStore{}, heapindex.New()
		var attempts, backoffs []int
		fails := true
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			attempts = append(attempts, job.Attempt)
			assert.Equal(t, job.Attempt-1, job.Failures())
			if fails {
				return errors.New("no luck")
			}
			store.do(job.Task.ID)
			return nil
		})
		s := newScheduler(t, idx, store, h, core.Options{MaxAttempts: 3, Backoff: func(n int) time.Duration {
			backoffs = append(backoffs, n)
			return time.Second
		}})
		again := func() {
			store.put(time.Now(), "1")
			track(t, idx, store, time.Now(), "1")
		}
		again()
		stop := running(t, s)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, []int{1, 2, 3}, attempts)
		assert.Equal(t, []int{1, 2}, backoffs)
		ends := store.settled()
		require.Len(t, ends, 3)
		assert.Equal(t, core.DeadLetter, ends[2].Outcome, "MaxAttempts holds")

		again() // the user brings the row back
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []int{1, 2, 3, 1}, attempts, "forgotten when it was dead")
		require.NoError(t, stop())

		fails = false
		for range 2 { // this Scheduler remembers across Runs and Ticks, until the task is done
			_, err := s.Tick(t.Context(), time.Now().Add(10*time.Second))
			require.NoError(t, err)
			again()
		}
		assert.Equal(t, []int{1, 2, 3, 1, 2, 1}, attempts)
	})
}

func TestFailuresAreForgottenWhenTheRowIsGone(t *testing.T) {
	store, idx := &stepStore{}, heapindex.New()
	var attempts []int
	h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		attempts = append(attempts, job.Attempt)
		return errors.New("no luck")
	})
	s := newScheduler(t, idx, store, h, core.Options{Backoff: func(int) time.Duration { return time.Second }})
	now := core.CeilMilli(time.Now())
	for i := range 3 {
		store.put(now, "1")
		track(t, idx, store, now, "1")
		if i == 1 {
			store.do("1") // the user did it
		}
		_, err := s.Tick(t.Context(), now.Add(time.Duration(i)*10*time.Second))
		require.NoError(t, err)
	}
	assert.Equal(t, []int{1, 1}, attempts)
}

func TestAStoresOwnCountIsTaken(t *testing.T) {
	p := newParts(t)
	var attempts []int
	h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		attempts = append(attempts, job.Attempt)
		return errors.New("no luck")
	})
	now := time.Now()
	require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: now}))
	for i := range 3 { // a process each
		s := p.scheduler(t, h, core.Options{Backoff: func(int) time.Duration { return time.Second }})
		_, err := s.Tick(t.Context(), now.Add(time.Duration(i+1)*10*time.Second))
		require.NoError(t, err)
	}
	assert.Equal(t, []int{1, 2, 3}, attempts)
}

package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// shortPages is a store whose pages of a purge are short, as others delete the rest of
// each meanwhile.
type shortPages struct {
	*claim.Memory
	left atomic.Int64
}

func (s *shortPages) Purge(_ context.Context, _ time.Time, limit int) (int, error) {
	n := min(int64(limit)/5, s.left.Load())
	s.left.Add(-n)
	return int(n), nil
}

// https://github.com/riverqueue/river/issues/575
func TestAShortPageIsNotTheEndOfAPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shortPages{Memory: claim.NewMemory(claim.MemoryOptions{})}
		store.left.Store(10_000)
		handler := core.HandlerFunc(func(context.Context, *core.Job) error { return nil })
		scheduler, err := core.New(heapindex.New(), store, handler, core.Options{})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
		defer stop()
		require.NoError(t, scheduler.Run(ctx))
		require.Zero(t, store.left.Load(), "rows that four minutes of purging left")
	})
}

// growing is a store in which a row grows old enough each time that somebody asks.
type growing struct {
	*claim.Memory
	last  time.Time
	calls atomic.Int64
}

func (s *growing) Purge(_ context.Context, before time.Time, _ int) (int, error) {
	s.calls.Add(1)
	if !before.After(s.last) {
		return 0, nil
	}
	s.last = before
	return 1, nil
}

func TestAPurgeEndsWhereRowsGoOnGrowingOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &growing{Memory: claim.NewMemory(claim.MemoryOptions{})}
		handler := core.HandlerFunc(func(context.Context, *core.Job) error { return nil })
		scheduler, err := core.New(heapindex.New(), store, handler, core.Options{})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		require.NoError(t, scheduler.Run(ctx))
		require.LessOrEqual(t, store.calls.Load(), int64(2*20))
	})
}

package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// deafStore extends no lease, as for a process that is cut off.
type deafStore struct{ *stepStore }

func (deafStore) Extend(context.Context, []core.Grant, time.Time) error { return errAway }

// stalledIndex takes nothing while it is stalled, as the process that uses it.
type stalledIndex struct {
	*heapindex.Index
	stalled atomic.Bool
}

func (x *stalledIndex) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	if x.stalled.Load() {
		return nil, time.Time{}, nil
	}
	return x.Index.Take(ctx, now, until, limit)
}

// Nothing in the store tells an older grant from the newest: a late end of one must not
// bring an entry nearer, whether others back off or have the task in hand.
func TestALateEndOfAnOlderGrantBringsNoEntryNearer(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(ctx context.Context) error // how the cut-off process's handler returns
	}{
		{"released, as its lease ran out", func(ctx context.Context) error { return ctx.Err() }},
		{"retried", func(context.Context) error { return errors.New("no luck") }},
		{"retried at a time", func(context.Context) error { return core.RetryAt(time.Now(), errors.New("no luck")) }},
		{"of an unknown kind", func(context.Context) error { return core.ErrUnknownKind }},
	} {
		for _, inHand := range []bool{false, true} {
			name := c.name + ", then backs off"
			if inHand {
				name = c.name + ", then in hand"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, idx, s := &stepStore{}, heapindex.New(), &starts{}
					cutOff := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
						s.note(job.Task.ID)
						time.Sleep(40 * time.Second) // past the end of its lease
						return c.end(ctx)
					})
					other := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
						s.note(job.Task.ID)
						if inHand {
							select {
							case <-time.After(time.Hour):
							case <-ctx.Done():
							}
						}
						return core.RetryAt(time.Now().Add(time.Hour), errors.New("the service is down"))
					})
					due := time.Now().Add(time.Second)
					store.put(due, "1")
					track(t, idx, store, due, "1")
					its := &stalledIndex{Index: idx}
					stop := running(t, newScheduler(t, its, deafStore{store}, cutOff, core.Options{}))
					time.Sleep(10 * time.Second)
					its.stalled.Store(true)
					require.Len(t, s.of("1"), 1)
					for range 2 {
						running(t, newScheduler(t, idx, store, other, core.Options{}))
					}
					time.Sleep(30 * time.Second)
					require.Len(t, s.of("1"), 2, "the other took over")
					time.Sleep(30 * time.Second)
					require.NoError(t, stop())
					time.Sleep(50 * time.Minute)
					assert.Len(t, s.of("1"), 2, "runs within the hour")
				})
			})
		}
	}
}

// What the index has lost in between is put back all the same.
func TestARetryPutsBackWhatTheIndexHasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx, s := &stepStore{}, heapindex.New(), &starts{}
		h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			if s.note(job.Task.ID) == 1 {
				all, err := idx.Due(ctx, time.Now().Add(time.Hour), 10)
				require.NoError(t, err)
				require.NoError(t, idx.Remove(ctx, all))
				return core.RetryAt(time.Now().Add(5*time.Second), errors.New("no luck"))
			}
			store.do(job.Task.ID)
			return nil
		})
		due := time.Now().Add(time.Second)
		store.put(due, "1")
		track(t, idx, store, due, "1")
		running(t, newScheduler(t, idx, store, h, core.Options{}))
		time.Sleep(time.Minute)
		at := s.of("1")
		require.Len(t, at, 2)
		assert.WithinRange(t, at[1], at[0].Add(4900*time.Millisecond), at[0].Add(5500*time.Millisecond))
	})
}

// Without a Taker two workers saw one entry due, and both began. Without a Restorer
// sweeps brought others' back-offs nearer.
func TestAnUndatedStoreNeedsAnIndexThatTakesAndRestores(t *testing.T) {
	restorerOnly := struct {
		*lossyIndex
		core.Restorer
	}{&lossyIndex{TimeIndex: heapindex.New()}, heapindex.New()}
	for _, idx := range []core.TimeIndex{takerOnly{heapindex.New()}, restorerOnly} {
		_, err := core.New(idx, &stepStore{}, &recorder{}, core.Options{Logger: quiet()})
		require.ErrorIs(t, err, core.ErrInvalid)
		require.ErrorContains(t, err, "want one that is a core.Taker and a core.Restorer")
		_, err = core.New(idx, newParts(t).store, &recorder{}, core.Options{Logger: quiet()})
		require.NoError(t, err)
	}
}

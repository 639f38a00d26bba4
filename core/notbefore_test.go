package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// A task whose release named a time within Ahead is granted at once, and its planned due
// time is past: the row's own time counts.
func TestAGrantDoesNotStartBeforeTheTimeThatItsReleaseNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index, store := heapindex.New(), claim.NewMemory(claim.MemoryOptions{})
		producer, err := core.NewProducer(index, store, core.ProducerOptions{})
		require.NoError(t, err)
		require.NoError(t, producer.Schedule(t.Context(), core.Task{ID: "a", Due: time.Now().Add(-time.Hour)}))
		var starts []time.Time
		var mux core.Mux // knows nothing of the task's kind
		mux.Register("other", core.HandlerFunc(func(context.Context, *core.Job) error { return nil }))
		opt := core.Options{Ahead: 6 * time.Second, Observer: core.Observer{
			Started: func(*core.Job, time.Duration) { starts = append(starts, time.Now()) },
		}}
		scheduler, err := core.New(index, store, &mux, opt)
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		require.NoError(t, scheduler.Run(ctx))
		require.NotEmpty(t, starts)
		require.Less(t, len(starts), 30, "starts of one task of an unknown kind in 10 s")
	})
}

// aheadless is a store whose grants can't tell their back-offs.
type aheadless struct {
	*claim.Memory
	ahead []time.Duration // by which the claims asked
}

func (s *aheadless) NoAhead() bool { return true }

func (s *aheadless) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	s.ahead = append(s.ahead, time.Until(lease.DueBy))
	return s.Memory.Claim(ctx, ids, lease)
}

func TestNothingIsClaimedAheadWhereTheStoreCannotTellBackOffs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index, store := heapindex.New(), &aheadless{Memory: claim.NewMemory(claim.MemoryOptions{})}
		producer, err := core.NewProducer(index, store, core.ProducerOptions{})
		require.NoError(t, err)
		require.NoError(t, producer.Schedule(t.Context(), core.Task{ID: "a", Due: time.Now().Add(3 * time.Second)}))
		runs := 0
		handler := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			if runs++; runs == 1 {
				return core.RetryAt(time.Now().Add(2*time.Second), errors.New("later"))
			}
			return nil
		})
		scheduler, err := core.New(index, store, handler, core.Options{Ahead: 5 * time.Second})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		require.NoError(t, scheduler.Run(ctx))
		require.Equal(t, 2, runs)
		for _, d := range store.ahead {
			require.LessOrEqual(t, d, time.Duration(0))
		}
	})
}

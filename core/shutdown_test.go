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
)

func TestShutdownLetsHandlersFinishAndKeepsTheirLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		began := make(chan struct{}, 1)
		h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			began <- struct{}{}
			select {
			case <-time.After(10 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		stop := running(t, p.scheduler(t, h, core.Options{Lease: time.Second}))
		other := &recorder{}
		stopOther := running(t, p.scheduler(t, other, core.Options{Lease: time.Second, Slots: 1}))
		_ = stopOther
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "long", Due: time.Now()}))
		time.Sleep(time.Millisecond)
		if other.get("long") == 1 {
			return // the other one got it; nothing to see
		}
		<-began
		start := time.Now()
		require.NoError(t, stop())
		assert.Equal(t, 10*time.Second, time.Since(start).Round(time.Second))
		assert.Equal(t, 0, other.get("long"), "run by the other one although heartbeats go on")
		row, _ := p.store.Task("long")
		assert.Equal(t, claim.DoneState, row.Status)
	})
}

func TestShutdownCancelsHandlersAfterDrainAndTakesTheirTasksBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		began := make(chan struct{}, 1)
		h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			return fmt.Errorf("half done: %w", context.Cause(ctx))
		})
		stop := running(t, p.scheduler(t, h, core.Options{Drain: 3 * time.Second}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		<-began
		start := time.Now()
		require.NoError(t, stop())
		assert.Equal(t, 3*time.Second, time.Since(start).Round(time.Second))
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.Pending, row.Status)
		assert.Equal(t, 0, row.Attempts, "the attempt is not counted")
	})
}

func TestShutdownNamesHandlersThatIgnoreTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		end := make(chan struct{})
		began := make(chan struct{}, 1)
		h := core.HandlerFunc(func(context.Context, *core.Job) error {
			began <- struct{}{}
			<-end
			return nil
		})
		stop := running(t, p.scheduler(t, h, core.Options{Drain: time.Second}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "deaf", Due: time.Now()}))
		<-began
		start := time.Now()
		err := stop()
		assert.Equal(t, 6*time.Second, time.Since(start).Round(time.Second))
		var still *core.StillRunningError
		require.ErrorAs(t, err, &still)
		assert.Equal(t, []core.ID{"deaf"}, still.Tasks)
		close(end)
	})
}

func TestShutdownGivesBackWhatIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		r := &recorder{}
		stop := running(t, p.scheduler(t, r, core.Options{Ahead: time.Second}))
		due := time.Now().Add(1500 * time.Millisecond)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: due}))
		time.Sleep(time.Second) // claimed ahead
		row, _ := p.store.Task("x")
		require.Equal(t, claim.Running, row.Status)
		require.NoError(t, stop())
		row, _ = p.store.Task("x")
		assert.Equal(t, claim.Pending, row.Status)
		assert.Equal(t, 0, row.Attempts)
		assert.Equal(t, core.CeilMilli(due).UnixMilli(), row.Due, "due as planned")
		assert.Equal(t, 0, r.get("x"))
		entries, err := p.idx.Due(t.Context(), due.Add(time.Hour), 10)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		assert.True(t, entries[0].Due.Equal(core.CeilMilli(due)), "the index has it at its due time")
	})
}

func TestShutdownWithAStoreThatIsAwaySaysWhatIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		store.set(failing("settle"))
		r := &recorder{}
		stop := running(t, newScheduler(t, p.idx, store, r, core.Options{}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		time.Sleep(time.Second)
		start := time.Now()
		err := stop()
		require.ErrorContains(t, err, "1 results could not be recorded")
		require.ErrorIs(t, err, errAway)
		assert.Less(t, time.Since(start), 30*time.Second)
	})
}

func TestRunTwiceAtOnceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		s := p.scheduler(t, &recorder{}, core.Options{})
		stop := running(t, s)
		synctest.Wait()
		require.ErrorIs(t, s.Run(t.Context()), core.ErrRunning)
		_, err := s.Tick(t.Context(), time.Now())
		require.ErrorIs(t, err, core.ErrRunning)
		require.NoError(t, stop())
		stopAgain := running(t, s) // after the end it may run again
		require.NoError(t, stopAgain())
	})
}

func TestTickRunsWhatIsDueAtTheGivenTime(t *testing.T) {
	p := newParts(t)
	due := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3 {
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: due.Add(time.Duration(i) * time.Hour)}))
	}
	r := &recorder{}
	s := p.scheduler(t, r, core.Options{})
	for i, want := range []int{0, 1, 1, 1, 0} {
		n, err := s.Tick(t.Context(), due.Add(time.Duration(i-1)*time.Hour))
		require.NoError(t, err)
		assert.Equal(t, want, n, "tick %d", i)
	}
	for i := range 3 {
		assert.Equal(t, 1, r.get(core.ID(fmt.Sprint(i))))
	}
}

func TestTickWithAnEmptyIndexFindsTasksInTheStore(t *testing.T) {
	p := newParts(t)
	due := core.CeilMilli(time.Now())
	require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: due}))
	cron := newParts(t) // a new process each time: its index starts empty
	cron.store = p.store
	r := &recorder{}
	n, err := cron.scheduler(t, r, core.Options{}).Tick(t.Context(), due)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, 1, r.get("x"))
}

func TestTickReportsAFailingStore(t *testing.T) {
	p := newParts(t)
	store := &hookedStore{Store: p.store}
	s := newScheduler(t, p.idx, store, &recorder{}, core.Options{})
	for _, op := range []string{"waiting", "claim"} {
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(op), Due: time.Now()}))
		store.set(failing(op))
		_, err := s.Tick(t.Context(), time.Now().Add(time.Second))
		require.ErrorIs(t, err, errAway, op)
	}
	store.set(nil)
	_, err := s.Tick(t.Context(), time.Time{})
	require.ErrorIs(t, err, core.ErrInvalid)
}

func TestUnknownKindsAreLeftToOthersWithoutCountingAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		var claims atomic.Int32
		opt := core.Options{Observer: core.Observer{Claimed: func(core.ClaimStats) { claims.Add(1) }}}
		stop := running(t, p.scheduler(t, &core.Mux{}, opt))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Kind: "later", Due: time.Now()}))
		time.Sleep(time.Minute)
		row, _ := p.store.Task("x")
		assert.LessOrEqual(t, row.Attempts, 1)
		assert.Less(t, claims.Load(), int32(60), "claims in a minute")
		var mux core.Mux
		ran := make(chan int, 1)
		core.Handle(&mux, "later", func(_ context.Context, job *core.Job, _ struct{}) error {
			ran <- job.Attempt
			return nil
		})
		require.NoError(t, stop())
		stop2 := running(t, p.scheduler(t, &mux, core.Options{}))
		time.Sleep(6 * time.Second)
		assert.Equal(t, 1, <-ran)
		require.NoError(t, stop2())
	})
}

func TestCancelOfARunningTaskCancelsItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		began := make(chan struct{}, 1)
		ended := make(chan error, 1)
		h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		})
		stop := running(t, p.scheduler(t, h, core.Options{Lease: 3 * time.Second}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		<-began
		fates, err := p.prod.Cancel(t.Context(), "x", "none")
		require.NoError(t, err)
		assert.Equal(t, []core.Fate{core.WasRunning, core.Unknown}, fates)
		start := time.Now()
		require.ErrorIs(t, <-ended, core.ErrLeaseLost)
		assert.Less(t, time.Since(start), 3*time.Second)
		require.NoError(t, stop())
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.Cancelled, row.Status)
	})
}

func TestSettledLeavesTheTaskAsTheHandlersTransactionDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			if err := p.store.Settle(ctx, job.Now(), []core.Settlement{job.Done()}); err != nil {
				return err
			}
			return core.Settled
		})
		stop := running(t, newScheduler(t, p.idx, store, h, core.Options{}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		time.Sleep(time.Second)
		require.NoError(t, stop())
		assert.Equal(t, 0, store.count("settle"))
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.DoneState, row.Status)
		left, err := p.idx.Due(t.Context(), time.Now().Add(time.Hour), 1)
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

func TestClockThatStepsIsFollowedWithoutTakingLiveLeases(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParts(t)
				store := &skewedStore{Store: p.store}
				r := &recorder{}
				h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
					select {
					case <-time.After(2 * time.Minute):
						return r.Handle(ctx, job)
					case <-ctx.Done():
						return errors.New("cancelled")
					}
				})
				opt := core.Options{Lease: 6 * time.Second}
				stop1 := running(t, newScheduler(t, p.idx, store, h, opt))
				stop2 := running(t, newScheduler(t, p.idx, store, h, opt))
				for i := range 20 {
					require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}))
				}
				time.Sleep(30 * time.Second)
				store.skew.Store(int64(step))
				time.Sleep(2 * time.Minute)
				require.NoError(t, stop1())
				require.NoError(t, stop2())
				ids, runs := r.total()
				assert.Equal(t, 20, ids)
				assert.Equal(t, 20, runs)
				for task := range p.store.All() {
					assert.Equal(t, 0, task.Crashes, task.ID)
				}
			})
		})
	}
}

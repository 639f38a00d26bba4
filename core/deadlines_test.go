package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// The lease counts from before the claim was sent, so little of it may be left.
func TestHandlerOfASlowClaimIsCancelledBeforeItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		lease := 30 * time.Second
		var claimed atomic.Int64
		start := time.Now()
		store.set(func(op string, call func() error) error {
			switch op {
			case "extend":
				return errAway
			case "claim":
				err := call()
				if claimed.Add(1) <= 4 { // takes effect, the reply doesn't come
					time.Sleep(5 * time.Second)
					return errAway
				}
				return err
			}
			return call()
		})
		over := make(chan time.Duration, 1)
		h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			<-ctx.Done()
			over <- time.Since(start)
			return ctx.Err()
		})
		stop := running(t, newScheduler(t, p.idx, store, h, core.Options{Lease: lease}))
		due := start.Add(20 * time.Second)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: due}))
		at := <-over
		assert.LessOrEqual(t, at, 20*time.Second+lease, "cancelled before the lease ends")
		store.set(nil)
		require.NoError(t, stop())
	})
}

func TestEveryHeartbeatExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			select {
			case <-ctx.Done():
			case <-time.After(130 * time.Second):
			}
			return nil
		})
		stop := running(t, newScheduler(t, p.idx, store, h, core.Options{}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		time.Sleep(121 * time.Second)
		assert.GreaterOrEqual(t, store.count("extend"), 11, "each third of 30 s")
		time.Sleep(20 * time.Second)
		require.NoError(t, stop())
	})
}

// A step back makes all leases look young: also the try after a failed one must
// extend them.
func TestStepBackIsRememberedUntilLeasesAreExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		hooked := &hookedStore{Store: p.store}
		store := &skewedStore{Store: hooked}
		var fails atomic.Int32
		hooked.set(func(op string, call func() error) error {
			if op == "extend" && fails.Add(-1) >= 0 {
				return errAway
			}
			return call()
		})
		var cause atomic.Value
		h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			select {
			case <-ctx.Done():
				cause.Store(context.Cause(ctx))
			case <-time.After(2 * time.Minute):
			}
			return nil
		})
		stop := running(t, newScheduler(t, p.idx, store, h, core.Options{Lease: 6 * time.Second}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		time.Sleep(21 * time.Second)
		fails.Store(1)
		store.skew.Store(int64(-time.Hour))
		time.Sleep(2 * time.Minute)
		assert.Nil(t, cause.Load())
		require.NoError(t, stop())
	})
}

func TestStepBackGivesBackWhatIsFarOffAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &skewedStore{Store: p.store}
		r := &recorder{}
		stop := running(t, newScheduler(t, p.idx, store, r, core.Options{Slots: 1, Ahead: 500 * time.Millisecond, Lease: 3 * time.Second}))
		start := time.Now()
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: start.Add(1200 * time.Millisecond)}))
		time.Sleep(800 * time.Millisecond) // claimed ahead
		store.skew.Store(int64(-time.Hour))
		time.Sleep(time.Second)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "y", Due: time.Now().Add(-time.Hour)}))
		time.Sleep(10 * time.Second)
		assert.Equal(t, 1, r.get("y"), "its slot is not held for an hour")
		assert.Equal(t, 0, r.get("x"))
		time.Sleep(time.Hour)
		assert.Equal(t, 1, r.get("x"))
		require.NoError(t, stop())
	})
}

package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The second step must not make the time of the first one the old reckoning.
func TestTakeOversGoByTheReckoningBeforeTheFirstOfSeveralSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skew time.Duration
		c := &clock{born: time.Now(), read: func(context.Context) (time.Time, error) { return time.Now().Add(skew), nil }}
		sync := func() {
			_, err := c.sync(t.Context(), time.Second, 10*time.Second)
			require.NoError(t, err)
		}
		sync()
		skew = time.Hour
		sync()
		time.Sleep(5 * time.Second)
		skew += time.Minute
		sync()
		assert.WithinDuration(t, time.Now(), c.takeOver(), time.Millisecond)
		assert.WithinDuration(t, time.Now().Add(skew), c.now(), time.Millisecond)
		time.Sleep(10 * time.Second)
		assert.WithinDuration(t, time.Now().Add(skew), c.takeOver(), time.Millisecond)
	})
}

// As in a process that was stopped while it read the clock.
func TestAReadingThatArrivesAfterItsTimeIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		travel := time.Duration(0)
		c := &clock{born: time.Now(), read: func(context.Context) (time.Time, error) {
			now := time.Now()
			time.Sleep(travel)
			return now, nil
		}}
		sync := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.sync(ctx, time.Second, 0)
			return err
		}
		travel = 10 * time.Second
		require.ErrorIs(t, sync(), context.DeadlineExceeded, "nor is it a first one")
		travel = 0
		require.NoError(t, sync())
		travel = 10 * time.Second
		require.ErrorIs(t, sync(), context.DeadlineExceeded)
		assert.WithinDuration(t, time.Now(), c.now(), time.Millisecond, "the reckoning goes on as it was")
	})
}

// A reading of some age makes leases that end early by the store's clock.
func TestALooseReadingShortensTheTimeOfHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{opt: Options{Lease: 30 * time.Second}, clock: &clock{born: time.Now()}}
		travel := 4 * time.Second
		e.clock.read = func(context.Context) (time.Time, error) {
			now := time.Now()
			time.Sleep(travel)
			return now, nil
		}
		sync := func() {
			_, err := e.clock.sync(t.Context(), time.Second, 0)
			require.NoError(t, err)
		}
		sync()
		now, gone := e.clock.lease()
		assert.WithinDuration(t, time.Now().Add(-travel), now, time.Millisecond)
		assert.Equal(t, travel, gone)
		assert.Equal(t, 24*time.Second, e.deadline(0, gone), "27 s less what is gone, but for half of the grace")
		travel = time.Millisecond
		sync()
		_, gone = e.clock.lease()
		assert.Equal(t, 27*time.Second, e.deadline(0, gone))
	})
}

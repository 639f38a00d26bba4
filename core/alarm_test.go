package core

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

// exactTimers are the kinds of timers that there are here.
func exactTimers() map[string]func() exactTimer {
	return map[string]func() exactTimer{
		"system": newExactTimer,
		"go":     func() exactTimer { return newGoTimer() },
	}
}

func TestAnAlarmWakesEachAtItsInstantAndNeverEarly(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, open := range exactTimers() {
		t.Run(name, func(t *testing.T) {
			a := newAlarm()
			a.timer = open()
			a.joined.Go(a.run)
			start := CeilMilli(time.Now())
			var all sync.WaitGroup
			for i := range 300 {
				// Later ones first, and three for each instant.
				due := start.Add(time.Duration(100-i/3) * time.Millisecond)
				all.Go(func() {
					assert.True(t, a.wait(t.Context(), nil, due, time.Until(due)))
					assert.False(t, time.Now().Before(due))
				})
			}
			all.Wait()
			assert.Empty(t, a.at)
			a.close()
		})
	}
}

func TestAnAlarmWakesWhoWaitsWhenTheirWaitIsCutShort(t *testing.T) {
	defer goleak.VerifyNone(t)
	a := newAlarm()
	far := time.Now().Add(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { assert.False(t, a.wait(ctx, nil, far, time.Until(far))) })
	all.Go(func() { assert.False(t, a.wait(t.Context(), stop, far, time.Until(far))) })
	cancel()
	close(stop)
	all.Wait()
	a.close()
}

func TestAnAlarmGoesByTheClockOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlarm()
		start := time.Now()
		for _, d := range []time.Duration{time.Hour, time.Millisecond, 3 * time.Second} {
			due := start.Add(d)
			assert.True(t, a.wait(t.Context(), nil, due, time.Until(due)))
			assert.Equal(t, max(d, time.Since(start)), time.Since(start))
		}
		assert.Equal(t, time.Hour, time.Since(start), "to the nanosecond")
		a.close()
	})
}

// The store's clock may turn out to be ahead of the reckoning.
func TestAnInstantThatTurnsOutToBeNearerComesSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlarm()
		start := time.Now()
		due := start.Add(time.Hour)
		var all sync.WaitGroup
		all.Go(func() { a.wait(t.Context(), nil, due, time.Hour) })
		synctest.Wait()
		all.Go(func() { a.wait(t.Context(), nil, due, time.Minute) })
		all.Wait()
		assert.Equal(t, time.Minute, time.Since(start))
		a.close()
	})
}

package core

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

// timers are those that an alarm may have: all, and each alone, as the others may be
// late or go off no more.
func timers() map[string]func() []alarmTimer {
	kinds := map[string]func() []alarmTimer{"all": newAlarmTimers}
	all := newAlarmTimers()
	for i, timer := range all {
		timer.close()
		kinds[fmt.Sprintf("%T", timer)] = func() []alarmTimer {
			set := newAlarmTimers()
			for k, other := range set {
				if k != i {
					other.close()
				}
			}
			return set[i : i+1]
		}
	}
	return kinds
}

func TestAnAlarmWakesEachAtItsInstantAndNeverEarly(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, open := range timers() {
		t.Run(name, func(t *testing.T) {
			a := newAlarm()
			a.timers = open()
			for _, timer := range a.timers {
				a.joined.Go(func() { a.run(timer) })
			}
			start := CeilMilli(time.Now())
			var all sync.WaitGroup
			for i := range 300 {
				// Later ones first, and three for each instant.
				due := start.Add(time.Duration(100-i/3) * time.Millisecond)
				all.Go(func() {
					assert.True(t, a.wait(t.Context(), nil, due, time.Until(due)))
					assert.False(t, time.Now().Before(due))
					assert.Less(t, time.Since(due), 5*time.Second)
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

func TestThoseWhoWaitForOneInstantShareATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, timer := newAlarm(), &countingTimer{goTimer: newGoTimer()}
		a.timers = []alarmTimer{timer}
		a.joined.Go(func() { a.run(timer) })
		due := time.Now().Add(time.Minute)
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { a.wait(t.Context(), nil, due, time.Until(due)) })
		}
		all.Wait()
		assert.Equal(t, time.Duration(0), time.Since(due))
		assert.Equal(t, 1, timer.sets)
		a.close()
	})
}

// countingTimer counts how often it is set.
type countingTimer struct {
	*goTimer
	sets int // under the alarm's lock
}

func (c *countingTimer) set(d time.Duration) {
	c.sets++
	c.goTimer.set(d)
}

func TestAnAlarmThatWasClosedStartsNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	a := newAlarm()
	a.close()
	stop := make(chan struct{})
	close(stop)
	assert.False(t, a.wait(t.Context(), stop, time.Now(), 0))
	assert.Nil(t, a.timers)
}

// BenchmarkAlarm reports how late the median of waits of 2.5 ms ends, by all timers
// together and by each alone, in an idle process and in one whose processors are busy.
func BenchmarkAlarm(b *testing.B) {
	for _, load := range []string{"idle", "busy"} {
		for name, open := range timers() {
			b.Run(load+"/"+name, func(b *testing.B) {
				ctx, cancel := context.WithCancel(b.Context())
				var spinning sync.WaitGroup
				if load == "busy" {
					for range runtime.GOMAXPROCS(0) {
						spinning.Go(func() {
							for ctx.Err() == nil {
								for began := time.Now(); time.Since(began) < 50*time.Microsecond; {
								}
								runtime.Gosched()
							}
						})
					}
				}
				a := newAlarm()
				a.timers = open()
				for _, timer := range a.timers {
					a.joined.Go(func() { a.run(timer) })
				}
				var late []time.Duration
				for b.Loop() {
					when := time.Now().Add(2500 * time.Microsecond)
					a.wait(ctx, nil, when, time.Until(when))
					late = append(late, time.Since(when))
				}
				slices.Sort(late)
				b.ReportMetric(float64(late[len(late)/2].Microseconds()), "µs-late")
				cancel()
				spinning.Wait()
				a.close()
			})
		}
	}
}

package acceptance

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// The scheduler of another process has one task an hour away, so it sleeps until
// then, or until its next poll. What the producer says to the index wakes it.
func TestATaskScheduledByAnotherProcessStartsOnTheDot(t *testing.T) {
	pairs := []pair{{viaRedis, mariadb}, {viaRedis, postgres}}
	var all sync.WaitGroup
	defer all.Wait()
	for name, poll := range map[string]time.Duration{
		"onlyTheWakeUpHelps": time.Hour,
		"pollOfASecond":      time.Second,
	} {
		all.Go(func() {
			t.Run(name, func(t *testing.T) {
				onEach(t, true, pairs, func(t *testing.T, p pair) {
					b := newBench(t, p)
					b.schedule(t, "far", "job", 1, func(int) time.Time { return time.Now().Add(time.Hour) })
					// The sweeps would help too.
					w := start(t, orders{At: b.at, Poll: poll, NearSweep: poll, HorizonSweep: time.Hour, Work: map[string]time.Duration{"job": 0}})
					ahead := func(prefix string) {
						b.schedule(t, prefix, "job", 1, func(int) time.Time { return time.Now().Add(300 * time.Millisecond) })
						until(t, 20*time.Second, prefix+" is done", func() bool { return len(w.all(settled, prefix)) == 1 })
					}
					ahead("first") // opens connections
					n := rounds(20, 60)
					inTime(t, func(t *testing.T, try int) (string, bool) {
						var late []event
						for i := range n {
							prefix := fmt.Sprintf("try%d.%d", try, i)
							ahead(prefix)
							late = append(late, w.all(started, prefix)...)
						}
						s := spreadOf(late)
						return s.String(), s.p50 <= 50*time.Millisecond
					})
					for _, e := range w.all(started, "") {
						if e.lateness() < 0 {
							t.Errorf("%s started %v early", e.ID, -e.lateness())
						}
					}
					w.stop(t)
				})
			})
		})
	}
}

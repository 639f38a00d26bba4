package acceptance

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// The scheduler of another process has one task an hour away, so it sleeps until
// then, or until its next poll. What the producer says to the index wakes it.
func TestATaskScheduledByAnotherProcessStartsOnTheDot(t *testing.T) {
	pairs := []fleet.Pair{{Index: fleet.Redis, Store: fleet.MariaDB}, {Index: fleet.Redis, Store: fleet.Postgres}}
	var all sync.WaitGroup
	defer all.Wait()
	for name, poll := range map[string]time.Duration{
		"onlyTheWakeUpHelps": time.Hour,
		"pollOfASecond":      time.Second,
	} {
		all.Go(func() {
			t.Run(name, func(t *testing.T) {
				fleet.OnEach(t, true, pairs, func(t *testing.T, p fleet.Pair) {
					b := fleet.NewBench(t, p)
					b.Schedule(t, "far", "job", 1, func(int) time.Time { return time.Now().Add(time.Hour) })
					// The sweeps would help too.
					w := fleet.Start(t, fleet.Orders{At: b.At, Poll: poll, NearSweep: poll, HorizonSweep: time.Hour, Work: map[string]time.Duration{"job": 0}})
					ahead := func(prefix string) {
						b.Schedule(t, prefix, "job", 1, func(int) time.Time { return time.Now().Add(300 * time.Millisecond) })
						fleet.Until(t, 20*time.Second, prefix+" is done", func() bool { return len(w.All(fleet.Settled, prefix)) == 1 })
					}
					ahead("first") // opens connections
					n := fleet.Rounds(20, 60)
					fleet.InTime(t, func(t *testing.T, try int) (string, bool) {
						var late []fleet.Event
						for i := range n {
							prefix := fmt.Sprintf("try%d.%d", try, i)
							ahead(prefix)
							late = append(late, w.All(fleet.Started, prefix)...)
						}
						s := fleet.SpreadOf(late)
						return s.String(), s.P50 <= 50*time.Millisecond
					})
					for _, e := range w.All(fleet.Started, "") {
						if e.Lateness() < 0 {
							t.Errorf("%s started %v early", e.ID, -e.Lateness())
						}
					}
					w.Stop(t)
				})
			})
		})
	}
}

package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// Redis dies in mid-run and never comes back. Tasks that were scheduled before,
// and such as come afterwards from a process that can't tell any index of them, run
// on time all the same: at most a near sweep and a second late.
func TestUnderAFailoverTasksRunOnTimeThoughRedisIsGoneForGood(t *testing.T) {
	t.Parallel()
	const bound = 2 * time.Second // the near sweep's default and a second
	pairs := []fleet.Pair{{Index: fleet.Redis, Store: fleet.MariaDB}, {Index: fleet.Redis, Store: fleet.Postgres}}
	fleet.OnEach(t, true, pairs, func(t *testing.T, p fleet.Pair) {
		fleet.InTime(t, func(t *testing.T, _ int) (string, bool) {
			n, span := fleet.Rounds(1500, 10_000), time.Duration(fleet.Rounds(8, 20))*time.Second
			b := fleet.NewBench(t, p)
			at := b.At
			at.Failover = true
			var workers []*fleet.Process
			for range 3 {
				workers = append(workers, fleet.Start(t, fleet.Orders{At: at, Work: map[string]time.Duration{"job": 0}}))
			}
			began := time.Now().Add(2 * time.Second)
			ids := b.Schedule(t, "before", "job", n, func(i int) time.Time { return began.Add(span * time.Duration(i) / time.Duration(n)) })
			time.Sleep(time.Until(began.Add(span / 4)))
			killed := time.Now()
			b.Server.Kill()
			for i := range 20 {
				ids = append(ids, b.Schedule(t, fmt.Sprint("after-", i), "job", 10, func(int) time.Time { return time.Now().Add(1500 * time.Millisecond) })...)
				time.Sleep(100 * time.Millisecond)
			}
			fleet.Until(t, span+60*time.Second, "all are done", func() bool { return fleet.CountAll(workers, fleet.Settled) >= len(ids) })
			fleet.StopAll(t, workers)
			fleet.CheckOnce(t, b, workers, ids, false)
			fleet.CheckTokens(t, workers)
			var late []fleet.Event
			for _, e := range fleet.Said(workers, fleet.Started, "") {
				if e.Due > killed.UnixMilli() {
					late = append(late, e)
				}
			}
			spread := fleet.SpreadOf(late)
			summary := fmt.Sprintf("Redis killed for good under a Failover, %s: %v", p.Name(), spread)
			t.Attr("dueclaim.figure", summary)
			return summary, spread.Max <= bound
		})
	})
}

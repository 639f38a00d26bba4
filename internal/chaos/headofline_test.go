package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// Ten thousand due members that nobody can run (of tasks that never were, of
// finished ones, of no valid id) stand before a hundred live tasks, which start
// soon all the same; and they go away.
func TestDeadMembersAtTheHeadDontHoldUpLiveTasks(t *testing.T) {
	t.Parallel()
	fleet.OnEach(t, true, onRedis, func(t *testing.T, p fleet.Pair) {
		const live = 100
		// Fewer, and more patience, where all other tests run beside it.
		dead, bound := fleet.Rounds(3_000, 10_000), time.Duration(fleet.Rounds(10, 5))*time.Second
		seed := seedOf(t)
		rng := random(seed, 0)
		b := fleet.NewBench(t, p)
		finished := b.Schedule(t, "finished", "job", 2000, func(int) time.Time { return time.Now().Add(time.Hour) })
		_, err := b.Producer.Cancel(t.Context(), finished...)
		require.NoError(t, err)
		workers := []*fleet.Process{}
		for range 4 {
			workers = append(workers, fleet.Start(t, fleet.Orders{At: b.At, Quiet: true, Work: map[string]time.Duration{"job": 0}}))
		}
		var slowest, cleanest time.Duration
		var late fleet.Spread
		kinds := map[string]int{}
		for round := range fleet.Rounds(1, 5) {
			members := make([]redis.Z, dead)
			head := time.Now().Add(-time.Hour)
			for i := range members {
				z := redis.Z{Score: float64(head.UnixMilli() + int64(i)), Member: fmt.Sprintf("orphan-%d-%d", round, i)}
				kind := "orphan"
				switch rng.IntN(8) {
				case 0: // two with the same id would be one
					kind = "finished"
					z.Member = string(finished[(i+round*len(members))%len(finished)])
				case 1:
					kind = "malformed"
					z.Member = fmt.Sprintf(" \xff%d\x00%d", round, i)
				case 2:
					kind, z.Score = "below zero", -float64(i)
				case 3:
					kind, z.Score = "between milliseconds", z.Score+0.5
				}
				kinds[kind]++
				members[i] = z
			}
			require.NoError(t, b.Redis.ZAdd(t.Context(), fleet.DueKey, members...).Err())
			put := time.Now()
			prefix := fmt.Sprintf("live%d", round)
			b.Schedule(t, prefix, "job", live, func(int) time.Time { return put })
			fleet.Until(t, 60*time.Second, "the live tasks are done", func() bool { return len(fleet.Said(workers, fleet.Settled, prefix)) >= live })
			late = fleet.SpreadOf(fleet.Said(workers, fleet.Started, prefix))
			slowest = max(slowest, late.Max)
			// Those that were taken stand at a lease's end. Members below zero are never due
			// and stand before nobody: they go at leisure. What was cancelled and not made
			// due here stands an hour ahead until its time.
			ahead := strconv.FormatInt(put.Add(30*time.Minute).UnixMilli(), 10)
			left := func() int64 { return b.Redis.ZCount(t.Context(), fleet.DueKey, "0", ahead).Val() }
			require.True(t, fleet.Poll(60*time.Second, func() bool { return left() == 0 }), "%d dead members are left after 60 s", left())
			cleanest = max(cleanest, time.Since(put))
		}
		fleet.StopAll(t, workers)
		fleet.CheckTokens(t, workers)
		for _, e := range fleet.Said(workers, fleet.Started, "") {
			require.True(t, strings.HasPrefix(string(e.ID), "live"), "%s ran", e.ID)
		}
		assert.LessOrEqual(t, slowest, bound, "lateness of the live tasks")
		t.Attr("dueclaim.figure", fmt.Sprintf("head of line, %s: seed %d, %d × %d dead members before %d live tasks, which started at most %.0f ms late; all dead ones gone within %.1f s",
			p.Name(), seed, fleet.Rounds(1, 5), dead, live, float64(slowest)/1e6, cleanest.Seconds()))
		t.Logf("at most %v late, last %v; gone within %v, but for %d below zero; %s",
			slowest, late, cleanest, b.Redis.ZCount(t.Context(), fleet.DueKey, "-inf", "(0").Val(), told(kinds))
	})
}

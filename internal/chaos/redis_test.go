package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// Whatever happens to Redis costs lateness alone: no task is lost or runs twice,
// and the loops go on.
func TestNothingThatHappensToRedisLosesATask(t *testing.T) {
	t.Parallel()
	fleet.OnEach(t, true, onRedis, func(t *testing.T, p fleet.Pair) {
		m := newMasters(t)
		b := fleet.BenchAt(t, fleet.Place{Store: p.Store, DSN: fleet.Database(t, p.Store), Redis: "redis://" + m.forwarder.addr() + "/0"})
		r := begin(t, b, 4)
		r.perform([]step{
			{kind: "restart empty", count: fleet.Rounds(2, 30), least: 300 * time.Millisecond, do: m.restart},
			{kind: "FLUSHALL", count: fleet.Rounds(2, 30), least: 200 * time.Millisecond, do: m.flush},
			{kind: "pause", count: fleet.Rounds(1, 20), least: 200 * time.Millisecond, do: m.pause},
			{kind: "eviction", count: fleet.Rounds(1, 10), least: 200 * time.Millisecond, do: m.evict},
			{kind: "OOM", count: fleet.Rounds(1, 10), least: 200 * time.Millisecond, do: m.outOfMemory},
			{kind: "promotion with lost writes", count: fleet.Rounds(1, 10), least: 200 * time.Millisecond, do: m.promote},
			{kind: "SCRIPT FLUSH", count: fleet.Rounds(3, 50), least: 20 * time.Millisecond, do: m.forgetScripts},
			{kind: "CLIENT KILL", count: fleet.Rounds(10, 200), least: 20 * time.Millisecond, do: func(t *testing.T) int { return m.killClient(t, r.rng) }},
		})
		a := r.end(func() {
			// The far tasks are in an index that was put right: soon, and after as many
			// losses as there are in a long run up to half of a horizon sweep's time later.
			soon := 2 * time.Second
			if fleet.Stress() {
				soon = time.Minute
			}
			if !fleet.Poll(soon, func() bool { return m.entries() >= 200 }) {
				t.Errorf("%d of 200 far tasks are in the index again", m.entries())
			}
		})
		if fleet.Stress() {
			assert.NotZero(t, m.lost, "writes lost by promotions")
		}
		t.Logf("%d entries were lost by promotions", m.lost)
		r.report("Redis spoilt, "+p.Name(), a)
	})
}

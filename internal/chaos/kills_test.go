package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

var (
	onRedis    = []fleet.Pair{{Index: fleet.Redis, Store: fleet.Postgres}, {Index: fleet.Redis, Store: fleet.MariaDB}}
	withSQLite = append(onRedis, fleet.Pair{Index: fleet.Heap, Store: fleet.SQLite})
)

// A worker that is killed with tasks in hand costs those tasks a lease, and
// nothing else: 300 times in all.
func TestKilledWorkersLoseNothing(t *testing.T) {
	t.Parallel()
	fleet.OnEach(t, true, withSQLite, func(t *testing.T, p fleet.Pair) {
		r := begin(t, fleet.NewBench(t, p), 4)
		r.perform([]step{{
			kind: "kill -9 of a worker", count: fleet.Rounds(6, 100), least: 300 * time.Millisecond,
			do: func(*testing.T) int {
				r.replace(r.rng.IntN(len(r.workers)))
				return 1
			},
		}})
		a := r.end()
		if fleet.Stress() {
			assert.NotZero(t, a.takeovers, "no task was in a killed worker's hands")
		}
		r.report("workers killed, "+p.Name(), a)
	})
}

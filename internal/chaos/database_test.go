package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// The database is killed, its connections are, it refuses writes, and the test's
// own transactions make deadlocks on the tasks' rows. No schedule that was
// acknowledged is lost, and no completion that was acknowledged runs again.
func TestNothingThatHappensToTheDatabaseUndoesWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	pairs := onRedis
	if fleet.Stress() {
		pairs = append(pairs, fleet.Pair{Index: fleet.Redis, Store: fleet.MySQL})
	}
	fleet.OnEach(t, true, pairs, func(t *testing.T, p fleet.Pair) {
		const storm = 20 // conflicts at a time
		d, b := newDatabase(t, p.Store)
		r := begin(t, b, 4)
		require.True(t, fleet.Poll(30*time.Second, func() bool { return len(r.ledger.latest(2*storm)) == 2*storm }))
		r.perform([]step{
			{kind: "kill -9", count: fleet.Rounds(1, 20), least: 500 * time.Millisecond, do: d.restart},
			{kind: "connection kill", count: fleet.Rounds(10, 300), least: 20 * time.Millisecond, do: func(t *testing.T) int { return d.killConnection(t, r.rng) }},
			{kind: "read-only", count: fleet.Rounds(1, 10), least: 300 * time.Millisecond, do: d.readOnly},
			{kind: "deadlock", count: fleet.Rounds(3, 100), least: 20 * time.Millisecond, do: func(t *testing.T) int { return d.storm(t, r, storm) }},
		})
		assert.GreaterOrEqual(t, r.faults["deadlock"], fleet.Rounds(60, 2000)*8/10, "conflicts: some of a storm's pairs are spared, by a victim in between")
		r.report(p.Store+" spoilt", r.end())
	})
}

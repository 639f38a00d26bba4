package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// What an idle process may use: store queries and Redis commands a second, and a
// share of one core.
const (
	idleQueries  = 3.0
	idleCommands = 5.0
	idleCPU      = 0.02
)

// What it may use while a thousand tasks are due that it has no handler for: they
// are claimed and given back once in 2.5 to 5 s, at most a hundred (its slots) at a
// time. Each claim, and each settling, is one to three statements.
const (
	strangeQueries  = 30.0
	strangeCommands = 20.0
	strangeCPU      = 0.15 // with the race detector
)

func TestAnIdleSchedulerAsksAndUsesNextToNothing(t *testing.T) {
	t.Parallel()
	fleet.OnEach(t, true, []fleet.Pair{{Index: fleet.Redis, Store: fleet.MariaDB}, {Index: fleet.Redis, Store: fleet.Postgres}}, func(t *testing.T, p fleet.Pair) {
		b, m := newMeteredBench(t, p)
		b.Schedule(t, "far", "job", 1000, func(i int) time.Time { return time.Now().Add(time.Hour + time.Duration(i)*time.Millisecond) })
		b.Rest() // Postgres counts the statements of a connection when it is closed, or some seconds later
		w := fleet.Start(t, fleet.Orders{At: b.At, Work: map[string]time.Duration{"job": 0}})
		time.Sleep(3 * time.Second) // it reads all rows at its start
		fleet.InTime(t, func(t *testing.T, _ int) (string, bool) {
			u := m.watch(t, w, time.Duration(fleet.Rounds(20, 65))*time.Second)
			return "idle, 1,000 tasks an hour away: " + u.String(), u.queries <= idleQueries && u.commands <= idleCommands && u.cpu < idleCPU
		})

		// Tasks that are due, but that nobody here can run (R59): given back again and again.
		b.Schedule(t, "strange", "strange", 1000, func(int) time.Time { return time.Now() })
		b.Rest()
		// Its back-off grows to its bound, within five rounds.
		fleet.Until(t, 60*time.Second, "they were given back again and again", func() bool { return w.Count(fleet.GivenBack) >= 5000 })
		before := w.Count(fleet.GivenBack)
		fleet.InTime(t, func(t *testing.T, _ int) (string, bool) {
			u := m.watch(t, w, time.Duration(fleet.Rounds(10, 60))*time.Second)
			return "1,000 tasks due without a handler: " + u.String(), u.queries <= strangeQueries && u.commands <= strangeCommands && u.cpu < strangeCPU
		})
		t.Logf("%s: given back %d times meanwhile", t.Name(), w.Count(fleet.GivenBack)-before)
		w.Stop(t)
		for id, r := range b.Rows(t) {
			require.Equal(t, claim.Pending, r.Status, id)
			assert.Zero(t, r.Attempts, "%s: attempts that were given back count", id)
		}
	})
}

// usage is what a process used per second.
type usage struct {
	queries, commands, inScripts float64
	cpu                          float64 // cores
	over                         time.Duration
	detail                       string
}

func (u usage) String() string {
	return fmt.Sprintf("%.2f store queries/s, %.2f Redis commands/s (%.2f more inside of scripts), %.2f %% of a core, over %.0f s; %s",
		u.queries, u.commands, u.inScripts, 100*u.cpu, u.over.Seconds(), u.detail)
}

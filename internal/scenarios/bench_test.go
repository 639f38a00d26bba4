package scenarios

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// newBench is what one scenario plays on: a database of its own, a Redis of its own
// with these further arguments, this process's handles and a producer.
func newBench(t *testing.T, store string, redisArgs ...string) *fleet.Bench {
	t.Helper()
	return fleet.NewBench(t, fleet.Pair{Index: fleet.Redis, Store: store}, redisArgs...)
}

func newProducer(t *testing.T, idx core.TimeIndex, store core.Claimer, o core.ProducerOptions) *core.Producer {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	p, err := core.NewProducer(idx, store, o)
	require.NoError(t, err)
	return p
}

// now is a due time for tasks that are due at once.
func now(int) time.Time { return time.Now() }

// onBoth plays a scenario on MariaDB and on Postgres, side by side.
func onBoth(t *testing.T, play func(t *testing.T, b *fleet.Bench)) {
	t.Helper()
	t.Parallel()
	for _, store := range []string{fleet.MariaDB, fleet.Postgres} {
		name, _, _ := strings.Cut(store, " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, newBench(t, store))
		})
	}
}

// orders are those of a process that is quick, as options has it, and whose handler
// works for so long, deaf to its ctx.
func orders(b *fleet.Bench, lease, work time.Duration) fleet.Orders {
	o := options(lease)
	return fleet.Orders{
		At: b.At, Lease: lease, Poll: o.Poll, NearSweep: o.NearSweep, HorizonSweep: o.HorizonSweep,
		Drain: 30 * time.Second, Work: map[string]time.Duration{"job": work}, Quiet: true,
	}
}

// startsOf gathers the starts of each id, ordered by time.
func startsOf(processes ...*fleet.Process) map[core.ID][]fleet.Event {
	all := map[core.ID][]fleet.Event{}
	for _, e := range fleet.Said(processes, fleet.Started, "") {
		all[e.ID] = append(all[e.ID], e)
	}
	return all
}

package acceptance

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// takeOverLease is the lease of these tests. On a machine too busy for a heartbeat
// within nine tenths of it a living worker loses its tasks, as it must; then there
// is nothing to measure, and another try is made.
const takeOverLease = 3 * time.Second

const tooBusy = "nothing: the machine was too busy for the worker's heartbeats"

var takeOverPairs = []fleet.Pair{{Index: fleet.Heap, Store: fleet.SQLite}, {Index: fleet.Redis, Store: fleet.MariaDB}, {Index: fleet.Redis, Store: fleet.Postgres}}

// taken starts a worker that takes all of n tasks of each kind and holds them.
func taken(t *testing.T, b *fleet.Bench, n int, work map[string]time.Duration) *fleet.Process {
	t.Helper()
	w := fleet.Start(t, fleet.Orders{At: b.At, Slots: n * len(work), Lease: takeOverLease, Work: work})
	for kind := range work {
		b.Schedule(t, kind, kind, n, func(int) time.Time { return time.Now() })
	}
	fleet.Until(t, 20*time.Second, "the worker runs them all", func() bool { return w.Count(fleet.Started) >= n*len(work) })
	return w
}

func TestTheTasksOfAKilledWorkerRunElsewhereInTime(t *testing.T) {
	t.Parallel()
	const n, bound = 50, takeOverLease + 4*time.Second
	fleet.OnEach(t, true, takeOverPairs, func(t *testing.T, p fleet.Pair) {
		fleet.InTime(t, func(t *testing.T, _ int) (string, bool) {
			b := fleet.NewBench(t, p)
			victim := taken(t, b, n, map[string]time.Duration{"hold": time.Hour})
			var others []*fleet.Process
			for range 2 {
				others = append(others, fleet.Start(t, fleet.Orders{At: b.At, Lease: takeOverLease, Work: map[string]time.Duration{"hold": 0}}))
			}
			time.Sleep(takeOverLease) // so that the victim's leases live by its heartbeats
			killed := time.Now()
			victim.Kill()
			if victim.Count(fleet.LeaseLost)+fleet.CountAll(others, fleet.Started) > 0 {
				return tooBusy, false
			}
			fleet.Until(t, 60*time.Second, "all are done", func() bool { return fleet.CountAll(others, fleet.Settled) >= n })
			fleet.StopAll(t, others)
			fleet.CheckTokens(t, append(others, victim))
			runs := fleet.Said(others, fleet.Started, "hold")
			require.Len(t, runs, n, "runs elsewhere")
			for id, r := range b.Rows(t) {
				assert.Equal(t, claim.DoneState, r.Status, id)
				assert.Equal(t, 1, r.Crashes, "%s: crashes", id)
				assert.Equal(t, 2, r.Attempts, "%s: attempts", id)
			}
			after := func(e fleet.Event) time.Duration { return time.UnixMicro(e.At).Sub(killed) }
			soonest, last := after(runs[0]), after(runs[n-1])
			return fmt.Sprintf("%d tasks of a killed worker ran elsewhere %.2f to %.2f s after its end (lease %v)",
				n, soonest.Seconds(), last.Seconds(), takeOverLease), last <= bound
		})
	})
}

func TestAWorkerThatWasStoppedBeyondItsLeaseCompletesNothing(t *testing.T) {
	t.Parallel()
	fleet.OnEach(t, true, takeOverPairs, func(t *testing.T, p fleet.Pair) {
		fleet.InTime(t, func(t *testing.T, _ int) (string, bool) { return stopped(t, fleet.NewBench(t, p)) })
	})
}

// writable tells whether the store can be written to.
func writable(t *testing.T, b *fleet.Bench) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := b.Store.Cancel(ctx, core.Call{Now: time.Now().UTC().Truncate(time.Millisecond)}, []core.ID{"nobody's"})
	return err == nil
}

func stopped(t *testing.T, b *fleet.Bench) (string, bool) {
	const n = 25
	// The deaf ones come to their ends during the stop, as the clock goes on, or
	// soon after; the others wait for their ctx. All of them then claim success.
	victim := taken(t, b, n, map[string]time.Duration{"hold": fleet.UntilCancelled, "deaf": 5 * time.Second})
	stoppedAt := time.Now()
	victim.Signal(t, syscall.SIGSTOP)
	if victim.Count(fleet.Settled)+victim.Count(fleet.LeaseLost) > 0 {
		return tooBusy, false
	}
	if b.At.Store == fleet.SQLite && !writable(t, b) {
		return "it was stopped in the middle of a write, which holds the file's lock", false
	}
	other := fleet.Start(t, fleet.Orders{At: b.At, Lease: takeOverLease, Work: map[string]time.Duration{"hold": 0, "deaf": 0}})
	fleet.Until(t, 60*time.Second, "all are done elsewhere", func() bool { return other.Count(fleet.Settled) >= 2*n })
	took := time.Since(stoppedAt)
	require.Zero(t, victim.Count(fleet.Settled))

	continued := time.Now()
	victim.Signal(t, syscall.SIGCONT)
	fleet.Until(t, 20*time.Second, "the victim's completions are answered", func() bool { return victim.Count(fleet.Settled) >= 2*n })
	answered := time.Since(continued)
	victim.Stop(t)
	other.Stop(t)

	refused := victim.All(fleet.Settled, "")
	require.Len(t, refused, 2*n)
	newer := map[core.ID]int64{}
	for _, e := range other.All(fleet.Started, "") {
		newer[e.ID] = e.Token
	}
	rows := b.Rows(t)
	require.Len(t, rows, 2*n)
	for _, e := range refused {
		assert.True(t, e.Lost, "%s: its late completion was answered %q", e.ID, e.Text)
		r := rows[e.ID]
		assert.Greater(t, newer[e.ID], e.Token, "%s: the newer token", e.ID)
		assert.Equal(t, newer[e.ID], r.Token, "%s: the row's token", e.ID)
		assert.Equal(t, claim.DoneState, r.Status, e.ID)
		assert.Equal(t, 1, r.Crashes, "%s: crashes", e.ID)
	}
	lost := victim.All(fleet.Cancelled, "hold")
	require.Len(t, lost, n, "handlers whose ctx was cancelled")
	for _, e := range lost {
		assert.True(t, e.Lost, "%s: ctx was cancelled, but not because of its lease", e.ID)
		assert.GreaterOrEqual(t, e.At, continued.UnixMicro())
	}
	fleet.CheckTokens(t, []*fleet.Process{victim, other})
	return fmt.Sprintf("%d tasks of a stopped worker were done elsewhere %.2f s after the stop (lease %v); continued, its %d completions were refused within %.2f s",
		2*n, took.Seconds(), takeOverLease, len(refused), answered.Seconds()), true
}

package acceptance

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// takeOverLease is the lease of these tests. On a machine too busy for a heartbeat
// within nine tenths of it a living worker loses its tasks, as it must; then there
// is nothing to measure, and another try is made.
const takeOverLease = 3 * time.Second

const tooBusy = "nothing: the machine was too busy for the worker's heartbeats"

var takeOverPairs = []pair{{heap, sqlite}, {viaRedis, mariadb}, {viaRedis, postgres}}

// taken starts a worker that takes all of n tasks of each kind and holds them.
func taken(t *testing.T, b *bench, n int, work map[string]time.Duration) *process {
	t.Helper()
	w := start(t, orders{At: b.at, Slots: n * len(work), Lease: takeOverLease, Work: work})
	for kind := range work {
		b.schedule(t, kind, kind, n, func(int) time.Time { return time.Now() })
	}
	until(t, 20*time.Second, "the worker runs them all", func() bool { return w.count(started) >= n*len(work) })
	return w
}

func TestTheTasksOfAKilledWorkerRunElsewhereInTime(t *testing.T) {
	t.Parallel()
	const n, bound = 50, takeOverLease + 4*time.Second
	onEach(t, true, takeOverPairs, func(t *testing.T, p pair) {
		inTime(t, func(t *testing.T, _ int) (string, bool) {
			b := newBench(t, p)
			victim := taken(t, b, n, map[string]time.Duration{"hold": time.Hour})
			var others []*process
			for range 2 {
				others = append(others, start(t, orders{At: b.at, Lease: takeOverLease, Work: map[string]time.Duration{"hold": 0}}))
			}
			time.Sleep(takeOverLease) // so that the victim's leases live by its heartbeats
			killed := time.Now()
			victim.kill()
			if victim.count(leaseLost)+countAll(others, started) > 0 {
				return tooBusy, false
			}
			until(t, 60*time.Second, "all are done", func() bool { return countAll(others, settled) >= n })
			stopAll(t, others)
			checkTokens(t, append(others, victim))
			runs := said(others, started, "hold")
			require.Len(t, runs, n, "runs elsewhere")
			for id, r := range b.rows(t) {
				assert.Equal(t, claim.DoneState, r.status, id)
				assert.Equal(t, 1, r.crashes, "%s: crashes", id)
				assert.Equal(t, 2, r.attempts, "%s: attempts", id)
			}
			after := func(e event) time.Duration { return time.UnixMicro(e.At).Sub(killed) }
			soonest, last := after(runs[0]), after(runs[n-1])
			return fmt.Sprintf("%d tasks of a killed worker ran elsewhere %.2f to %.2f s after its end (lease %v)",
				n, soonest.Seconds(), last.Seconds(), takeOverLease), last <= bound
		})
	})
}

func TestAWorkerThatWasStoppedBeyondItsLeaseCompletesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, true, takeOverPairs, func(t *testing.T, p pair) {
		inTime(t, func(t *testing.T, _ int) (string, bool) { return stopped(t, newBench(t, p)) })
	})
}

func stopped(t *testing.T, b *bench) (string, bool) {
	const n = 25
	// The deaf ones come to their ends during the stop, as the clock goes on, or
	// soon after; the others wait for their ctx. All of them then claim success.
	victim := taken(t, b, n, map[string]time.Duration{"hold": untilCancelled, "deaf": 5 * time.Second})
	stoppedAt := time.Now()
	victim.signal(t, syscall.SIGSTOP)
	if victim.count(settled)+victim.count(leaseLost) > 0 {
		return tooBusy, false
	}
	other := start(t, orders{At: b.at, Lease: takeOverLease, Work: map[string]time.Duration{"hold": 0, "deaf": 0}})
	until(t, 60*time.Second, "all are done elsewhere", func() bool { return other.count(settled) >= 2*n })
	took := time.Since(stoppedAt)
	require.Zero(t, victim.count(settled))

	continued := time.Now()
	victim.signal(t, syscall.SIGCONT)
	until(t, 20*time.Second, "the victim's completions are answered", func() bool { return victim.count(settled) >= 2*n })
	answered := time.Since(continued)
	victim.stop(t)
	other.stop(t)

	refused := victim.all(settled, "")
	require.Len(t, refused, 2*n)
	newer := map[core.ID]int64{}
	for _, e := range other.all(started, "") {
		newer[e.ID] = e.Token
	}
	rows := b.rows(t)
	require.Len(t, rows, 2*n)
	for _, e := range refused {
		assert.True(t, e.Lost, "%s: its late completion was answered %q", e.ID, e.Text)
		r := rows[e.ID]
		assert.Greater(t, newer[e.ID], e.Token, "%s: the newer token", e.ID)
		assert.Equal(t, newer[e.ID], r.token, "%s: the row's token", e.ID)
		assert.Equal(t, claim.DoneState, r.status, e.ID)
		assert.Equal(t, 1, r.crashes, "%s: crashes", e.ID)
	}
	lost := victim.all(cancelled, "hold")
	require.Len(t, lost, n, "handlers whose ctx was cancelled")
	for _, e := range lost {
		assert.True(t, e.Lost, "%s: ctx was cancelled, but not because of its lease", e.ID)
		assert.GreaterOrEqual(t, e.At, continued.UnixMicro())
	}
	checkTokens(t, []*process{victim, other})
	return fmt.Sprintf("%d tasks of a stopped worker were done elsewhere %.2f s after the stop (lease %v); continued, its %d completions were refused within %.2f s",
		2*n, took.Seconds(), takeOverLease, len(refused), answered.Seconds()), true
}

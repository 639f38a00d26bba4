package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// Leases are short, so that there are many take-overs.
const lease = 2 * time.Second

// patience is how long after the last fault all may take to end.
const patience = 2 * time.Minute

// run is a fleet of workers with producers, while faults happen.
type run struct {
	t      *testing.T
	b      *fleet.Bench
	seed   uint64
	rng    *rand.Rand // the schedule's
	orders fleet.Orders
	faults map[string]int
	began  time.Time

	workers []*fleet.Process // those that should be alive
	all     []*fleet.Process // those that ever were
	killed  map[*fleet.Process]time.Time

	stop      context.CancelFunc
	producers sync.WaitGroup
	ledger    ledger
}

// begin starts workers and producers on a bench.
func begin(t *testing.T, b *fleet.Bench, workers int) *run {
	t.Helper()
	seed := seedOf(t)
	r := &run{
		t: t, b: b, seed: seed, rng: random(seed, 0), faults: map[string]int{}, killed: map[*fleet.Process]time.Time{}, began: time.Now(),
		orders: fleet.Orders{
			At: b.At, Lease: lease, MaxCrashes: 10_000, Ends: true, Quiet: true,
			Work: map[string]time.Duration{"job": 5 * time.Millisecond, "slow": 400 * time.Millisecond, "far": 0},
		},
	}
	for range workers {
		r.workers = append(r.workers, fleet.Start(t, r.orders))
	}
	r.all = slices.Clone(r.workers)
	// So that the index is never empty, and what it loses shows.
	b.Schedule(t, "far", "far", 200, func(i int) time.Time { return time.Now().Add(time.Hour + time.Duration(i)*time.Second) })
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	t.Cleanup(func() {
		stop()
		r.producers.Wait()
	})
	for i := range 2 {
		r.producers.Go(func() { r.produce(ctx, fmt.Sprintf("p%d", i), random(seed, uint64(1+i))) })
	}
	return r
}

// end stops the producers, waits until all is done and holds what must be so
// whatever has happened; last looks before the workers end. It returns the audit.
func (r *run) end(last ...func()) audit {
	t := r.t
	t.Helper()
	r.stop()
	r.producers.Wait()
	acked := r.ledger.ids()
	drained := time.Now()
	for deadline := drained.Add(patience); ; time.Sleep(50 * time.Millisecond) {
		open := r.open()
		if open == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d tasks have not ended %v after the last fault", open, patience)
			break
		}
	}
	took := time.Since(drained)
	alive := r.alive()
	for _, w := range r.workers {
		require.False(t, w.Gone(), "worker %d has ended by itself", w.Pid())
	}
	for _, look := range last {
		look()
	}
	fleet.StopAll(t, r.workers)
	a := r.audit(acked)
	a.drained, a.alive = took, alive
	return a
}

// open counts the tasks, those far ahead apart, that have not ended. An error of
// a server that is just back reads as one.
func (r *run) open() int {
	var n int
	err := r.b.DB.QueryRowContext(r.t.Context(),
		"SELECT COUNT(*) FROM "+claim.DefaultTable+" WHERE status IN ('pending', 'running') AND kind <> 'far'").Scan(&n)
	if err != nil {
		return 1
	}
	return n
}

// alive schedules tasks after everything and says how late they started: the
// workers' loops must have survived, not just finished.
func (r *run) alive() fleet.Spread {
	t := r.t
	t.Helper()
	const n, bound = 40, 2 * time.Second // the near sweep and a second
	var s fleet.Spread
	for try := range 3 {
		prefix := fmt.Sprintf("after%d", try)
		first := time.Now().Add(500 * time.Millisecond)
		r.b.Schedule(t, prefix, "job", n, func(i int) time.Time { return first.Add(time.Duration(i) * 20 * time.Millisecond) })
		fleet.Until(t, 30*time.Second, "tasks scheduled after the faults are done", func() bool {
			return len(fleet.Said(r.workers, fleet.Settled, prefix)) >= n
		})
		if s = fleet.SpreadOf(fleet.Said(r.workers, fleet.Started, prefix)); s.Max <= bound {
			return s
		}
		t.Logf("scheduled after the faults: %v", s)
	}
	assert.LessOrEqual(t, s.Max, bound, "lateness of tasks scheduled after the faults, three times")
	return s
}

// report prints the figures of a run. what is its title, and the attribute's key.
func (r *run) report(what string, a audit) {
	counts := map[string]int{}
	for _, p := range r.all {
		for name, n := range p.Counts() {
			counts[name] += n
		}
	}
	r.t.Logf("%s: seed %d, %.0f s; scheduled %d in %d calls; faults: %s; workers said: %s; their calls failed: %s; schedule calls of unknown outcome: %s; %v",
		what, r.seed, time.Since(r.began).Seconds(), len(r.ledger.ids()), r.ledger.calls, told(r.faults), told(counts), told(fleet.Failures(r.all)),
		told(r.ledger.unknown), a)
	r.t.Logf("some failures: %s", strings.Join(r.examples(), " | "))
	r.t.Attr("dueclaim.figure", fmt.Sprintf("%s: seed %d, %d tasks, faults: %s; unknown schedules: %s; %v",
		what, r.seed, len(r.ledger.ids()), told(r.faults), told(r.ledger.unknown), a))
}

// examples are failed calls, one of each kind and reason.
func (r *run) examples() []string {
	seen := map[string]string{}
	for _, e := range fleet.Said(r.all, fleet.Failed, "") {
		key := digits.ReplaceAllString(e.Text, "n")
		seen[key[:min(len(key), 60)]] = e.Text
	}
	return slices.Sorted(maps.Values(seen))
}

var digits = regexp.MustCompile(`[0-9]+`)

// replace kills a worker, at its place in the list, and starts another one.
func (r *run) replace(i int) {
	w := r.workers[i]
	w.Kill()
	r.killed[w] = time.Now()
	next, err := fleet.Launch(r.orders)
	require.NoError(r.t, err)
	r.t.Cleanup(next.Kill)
	r.workers[i] = next
	r.all = append(r.all, next)
}

// taskOf makes a producer's next task: mostly short work, due soon or just now.
func taskOf(rng *rand.Rand, id core.ID) core.Task {
	task := core.Task{ID: id, Kind: "job", Due: time.Now().Add(between(rng, 0, 1500*time.Millisecond))}
	if rng.IntN(10) == 0 {
		task.Kind = "slow"
	}
	return task
}

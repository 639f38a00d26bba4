package simulation

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

const schedulers, producers = 4, 2

func stress() bool { return os.Getenv("DUECLAIM_STRESS") != "" }

// TestSimulation goes through seeds: 30, or 2,000 with DUECLAIM_STRESS, or as many as
// DUECLAIM_SEEDS says, or the one that DUECLAIM_SEED names.
func TestSimulation(t *testing.T) {
	first, n := uint64(1), uint64(30)
	if stress() {
		n = 2000
	}
	if text := os.Getenv("DUECLAIM_SEEDS"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	replay := os.Getenv("DUECLAIM_SEED")
	if replay != "" {
		seed, err := strconv.ParseUint(replay, 10, 64)
		require.NoError(t, err)
		first, n = seed, 1
	}
	var mu sync.Mutex
	sum := map[kind]int{}
	next := first
	var slowest time.Duration
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for side := range 2 {
			t.Run(fmt.Sprint("side", side), func(t *testing.T) {
				t.Parallel()
				for {
					mu.Lock()
					seed := next
					next++
					mu.Unlock()
					if seed >= first+n || t.Failed() && replay == "" {
						return
					}
					counts, drained := simulate(t, seed)
					mu.Lock()
					for k, v := range counts {
						sum[k] += v
					}
					slowest = max(slowest, drained)
					mu.Unlock()
				}
			})
		}
	})
	took := time.Since(began)
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		t.Logf("%7d %s", sum[k], k)
	}
	if t.Failed() || replay != "" {
		return
	}
	for _, k := range required() {
		require.Positive(t, sum[k], "no seed met: %s", k)
	}
	t.Attr("dueclaim.figure", fmt.Sprintf("simulation: seeds %d to %d, %.1f a second, %d tasks, %d starts, faults: %s; slowest drain %v",
		first, first+n-1, float64(n)/took.Seconds(), sum[tasks], sum[runs], summary(sum), slowest.Round(time.Second)))
}

// summary lists all counts but those of tasks and runs.
func summary(sum map[kind]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		if k != tasks && k != runs {
			list = append(list, fmt.Sprintf("%d %s", sum[k], strings.TrimPrefix(string(k), "conformance: ")))
		}
	}
	return strings.Join(list, ", ")
}

// simulate runs one seed.
func simulate(t *testing.T, seed uint64) (counts map[kind]int, drained time.Duration) {
	counts = map[kind]int{}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		drained = w.run()
		w.report(t)
		w.total(counts)
	})
	return counts, drained
}

// run is a system's life: faults, then quiet, then the end.
func (w *world) run() time.Duration {
	var wg sync.WaitGroup
	slots := make([]*slot, schedulers)
	last := make([]*process, schedulers)
	for i := range slots {
		slots[i] = &slot{w: w, n: i}
		wg.Go(func() { last[i] = slots[i].live() })
	}
	prods := make([]*producer, producers)
	for i := range prods {
		prods[i] = newProducer(w, i)
		wg.Go(prods[i].produce)
	}
	wg.Go(w.nemesis)

	time.Sleep(w.set.faulty)
	w.becalm()
	w.note("", "the faults have stopped", 0, "")
	wg.Wait()
	time.Sleep(16 * time.Second) // the last late effect
	w.late.Wait()
	for _, p := range prods {
		p.resolve()
	}
	if !w.set.hour {
		prods[0].hasten()
	}
	drained := w.drain()
	w.checkRows()
	w.checkIndex()
	for _, p := range last {
		p.cancel()
	}
	for _, p := range last {
		<-p.done
		if p.err != nil {
			w.fail("", "%s: Run returned %v", p.g.name, p.err)
		}
		if p.hand.n != 0 {
			w.fail("", "%s: %d tasks in hand after the end", p.g.name, p.hand.n)
		}
	}
	return drained
}

// drain waits until all tasks are finished and returns how long that took from when
// the last of them was due.
func (w *world) drain() time.Duration {
	var last time.Time
	for _, t := range w.ledger.pending() {
		if due := claim.Time(t.Due); due.After(last) {
			last = due
		}
	}
	if wait := last.Sub(w.clock.now()); wait > 0 {
		time.Sleep(wait)
	}
	began := time.Now()
	bound := time.Minute + 6*w.set.lease
	for {
		live := w.ledger.open()
		took := time.Since(began)
		if len(live) == 0 {
			return took
		}
		if took > bound {
			for _, id := range live {
				w.fail(id, "not finished %v after the faults and the last due time", took)
			}
			return took
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// checkRows judges the finished tasks.
func (w *world) checkRows() {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for t := range w.ledger.mem.All() {
		life := w.ledger.life(t.ID)
		p := w.plans[string(t.Payload)]
		switch {
		case t.Status == claim.DoneState && life.dones != 1:
			w.fail(t.ID, "is done, and %d completions were recorded", life.dones)
		case t.Status != claim.DeadState:
		case t.Crashes >= 10:
			w.count(deadByCrashes)
		case p.kind == "hopeless" && life.retries != 1:
			w.fail(t.ID, "is dead after %d retries, with MaxAttempts 2", life.retries)
		case p.kind != "hopeless" && p.kind != "dead":
			w.fail(t.ID, "is dead: %s", t.LastError)
		}
	}
}

// checkIndex waits until what is due has left the index.
func (w *world) checkIndex() {
	wait := 30 * time.Second
	if w.set.hour {
		wait = time.Hour + 20*time.Minute
		if all := w.redis.entries(); len(all) == 0 {
			wait = 0
		} else {
			wait = max(0, min(wait, all[len(all)-1].Due.Sub(w.clock.now())))
		}
	}
	time.Sleep(wait + 5*time.Second)
	for _, e := range w.redis.entries() {
		if w.set.hour || e.Due.Before(w.clock.now().Add(-2*time.Second)) {
			w.fail(e.ID, "is still in the index, at %v, now %v", e.Due, w.clock.now())
		}
	}
}

// pending returns the rows of tasks that are live.
func (l *ledger) pending() (rows []claim.MemoryTask) {
	for t := range l.mem.All() {
		if t.Status.Live() {
			rows = append(rows, t)
		}
	}
	return rows
}

// stored tells whether the call has stored a task of that id.
func (l *ledger) stored(id core.ID, call string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.ids[id]
	return s != nil && slices.ContainsFunc(s.lives, func(x *life) bool { return x.call == call })
}

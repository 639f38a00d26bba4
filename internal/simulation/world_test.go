package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
)

// settings are what a seed chooses about a system.
type settings struct {
	refuse, late, slow, lose float64 // shares of the calls
	lease                    time.Duration
	drain                    time.Duration
	horizon                  time.Duration
	slots                    int
	equal                    bool // no TimeSource, equal clocks
	deletes                  bool // finished tasks are deleted at once; their insertions aren't late
	steps                    bool // the store's clock is set now and then
	hour                     bool // tasks of an hour from now are waited for
	faulty                   time.Duration
}

func newSettings(r *rand.Rand) settings {
	pick := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] * time.Second }
	heavy := []float64{0.3, 1, 2}[r.IntN(3)] // how bad it is
	s := settings{
		refuse: 0.04 * heavy, late: 0.04 * heavy, slow: 0.04 * heavy, lose: 0.05 * heavy,
		lease: pick(1, 2, 3, 5, 10), drain: pick(-1, 1, 5), slots: 2 + r.IntN(20),
		equal: r.IntN(6) == 0, deletes: r.IntN(8) == 0, steps: r.IntN(3) == 0, hour: r.IntN(16) == 0,
		faulty: pick(30, 45, 60),
	}
	if r.IntN(4) == 0 {
		s.horizon = 2 * time.Minute
	}
	s.steps = s.steps && !s.equal && !s.deletes
	return s
}

// world is one simulated system.
type world struct {
	seed   uint64
	set    settings
	clock  *clock
	redis  *redis
	ledger *ledger
	calm   atomic.Bool // the faults have stopped
	late   sync.WaitGroup
	opt    conformance.FaultOptions
	began  time.Time

	mu       sync.Mutex
	counts   map[kind]int
	failures []string
	failed   map[core.ID]bool
	events   []event
	lossy    []*conformance.Faults
	plans    map[string]plan // by payload
	active   map[core.ID][]*run
}

type event struct {
	at    time.Duration
	id    core.ID
	what  string
	token int64
	more  string
}

func newWorld(seed uint64) *world {
	r := dice(seed, 0, "settings")
	w := &world{
		seed: seed, set: newSettings(r), clock: &clock{}, redis: newRedis(), began: time.Now(),
		counts: map[kind]int{}, failed: map[core.ID]bool{}, plans: map[string]plan{}, active: map[core.ID][]*run{},
	}
	if !w.set.equal {
		w.clock.offset = between(r, -10*time.Minute, 10*time.Minute)
	}
	light := 0.01 + 0.03*r.Float64()
	w.opt = conformance.FaultOptions{
		Fail: light / 2, Lose: light / 2, Twice: light, Delay: light, MaxDelay: 500 * time.Millisecond,
		LoseEntry: 0.1 * r.Float64(), DoubleEntry: 0.1 * r.Float64(),
		HideTaker: r.IntN(4) == 0, HideWatcher: r.IntN(4) == 0, HideDetector: r.IntN(2) == 0, HideTimeSource: w.set.equal,
	}
	w.ledger = newLedger(w, claim.MemoryOptions{DeleteFinished: w.set.deletes})
	return w
}

// faults returns the conformance package's faults for one wrapper.
func (w *world) faults() *conformance.Faults {
	w.mu.Lock()
	defer w.mu.Unlock()
	opt := w.opt
	opt.Seed = w.seed<<16 + uint64(len(w.lossy))
	f := conformance.NewFaults(opt)
	if w.calm.Load() {
		f.Stop()
	}
	w.lossy = append(w.lossy, f)
	return f
}

func conformanceIndex(w *world) core.TimeIndex { return conformance.FaultyIndex(w.redis, w.faults()) }
func conformanceStore(w *world) core.Store     { return conformance.FaultyStore(w.ledger, w.faults()) }

func (w *world) count(k kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[k]++
}

// fail notes a broken promise.
func (w *world) fail(id core.ID, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[id] = true
	w.failures = append(w.failures, fmt.Sprintf("%v %s: ", time.Since(w.began), id)+fmt.Sprintf(format, args...))
}

func (w *world) note(id core.ID, what string, token int64, more string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{time.Since(w.began), id, what, token, more})
}

// becalm stops the faults.
func (w *world) becalm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm.Store(true)
	for _, f := range w.lossy {
		f.Stop()
	}
}

// report fails the test with what was broken and with what happened to those ids.
func (w *world) report(t *testing.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failures) == 0 {
		return
	}
	for _, f := range w.failures[:min(10, len(w.failures))] {
		t.Errorf("seed %d: %s", w.seed, f)
	}
	t.Logf("replay with DUECLAIM_SEED=%d; settings %+v", w.seed, w.set)
	lines := 0
	for _, e := range w.events {
		if (w.failed[e.id] || e.id == "") && lines < 200 {
			lines++
			t.Logf("%12v %s %s token %d %s", e.at, e.id, e.what, e.token, e.more)
		}
	}
}

// total adds the counts to sum.
func (w *world) total(sum map[kind]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, n := range w.counts {
		sum[k] += n
	}
	for _, f := range w.lossy {
		for k, n := range maps.All(f.Injected()) {
			sum[kind("conformance: "+string(k))] += n
		}
	}
}

package conformance

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Pair is one index and one store, on which the scheduler does the main job.
type Pair struct {
	// Name names the pair for the test attribute "dueclaim.backend", such as
	// "redis+mariadb".
	Name string
	// Index returns an empty index, once a case.
	Index func(t *testing.T) core.TimeIndex
	// PeerIndex returns a second process's index: a further handle on the data of
	// first or, where processes share none, an index of its own (the scheduler's
	// sweeps make up for that). Nil: first serves for all.
	PeerIndex func(t *testing.T, first core.TimeIndex) core.TimeIndex
	// Store returns a store without any task, once a case.
	Store func(t *testing.T) core.Store
	// PeerStore returns a further handle on the data of first. Nil: first serves
	// for all.
	PeerStore func(t *testing.T, first core.Store) core.Store
	// Skip maps the name of a case (group/what) to the reason why it can't pass
	// on this pair. A name that no case has fails.
	Skip map[string]string
}

// TestScheduler runs the main job on a pair: tasks are scheduled, claimed once,
// run on time, cancelled, retried, taken over and given back. Unlike the other
// suites it needs real time, some twenty seconds.
func TestScheduler(t *testing.T, pair Pair) {
	t.Helper()
	testScheduler(t, pair, newSettings(nil, pair.Skip))
}

func testScheduler(t *testing.T, pair Pair, s settings) {
	t.Helper()
	require.NotNil(t, pair.Index, "conformance.Pair.Index is nil")
	require.NotNil(t, pair.Store, "conformance.Pair.Store is nil")
	s.patience *= 3 // what these cases wait for takes time by itself
	cases := schedulerCases()
	s.checkSkip(t, names(cases))
	runCases(t, s, cases, func(t *testing.T, c *caseT) *pairEnv {
		if pair.Name != "" {
			t.Attr("dueclaim.backend", "pair:"+pair.Name)
		}
		e := &pairEnv{caseT: c, runs: map[core.ID][]run{}}
		idx := made(c, "conformance.Pair.Index", func() core.TimeIndex { return pair.Index(t) })
		store := made(c, "conformance.Pair.Store", func() core.Store { return pair.Store(t) })
		for i := range processes {
			if i > 0 && pair.PeerIndex != nil {
				e.idx[i] = made(c, "conformance.Pair.PeerIndex", func() core.TimeIndex { return pair.PeerIndex(t, e.idx[0]) })
			} else {
				e.idx[i] = idx
			}
			if i > 0 && pair.PeerStore != nil {
				e.stores[i] = made(c, "conformance.Pair.PeerStore", func() core.Store { return pair.PeerStore(t, e.stores[0]) })
			} else {
				e.stores[i] = store
			}
		}
		return e
	})
}

func schedulerCases() []testCase[*pairEnv] { return slices.Concat(pairCases, pairFaults) }

// processes is how many schedulers share the queue, each on handles of its own.
const processes = 3

// pairEnv is what a case for a pair works with.
type pairEnv struct {
	*caseT
	idx    [processes]core.TimeIndex
	stores [processes]core.Store

	mu      sync.Mutex
	runs    map[core.ID][]run
	settled map[core.ID]int // accepted settlements, but for
	given   map[core.ID]int // those that gave the task back
	lost    map[core.ID]int // refused ones
	errs    []string        // the last of what the backends said
	// ahead is how far the store's clock may be before this process's.
	ahead time.Duration
}

// run is one call of a handler.
type run struct {
	at               time.Time // process time
	token            int64
	attempt, crashes int
}

func (e *pairEnv) producer(i int) *core.Producer {
	p, err := core.NewProducer(e.idx[i], e.stores[i], core.ProducerOptions{
		Logger: slog.New(slog.DiscardHandler), Observer: e.observer(),
	})
	require.NoError(e, err, "NewProducer")
	return p
}

func (e *pairEnv) schedule(tasks ...core.Task) {
	require.NoError(e, e.producer(0).Schedule(e.ctx, tasks...), "Schedule")
}

// quick are options under which little time passes; the lease stays long.
func quick() core.Options {
	return core.Options{
		Poll: 200 * time.Millisecond, NearSweep: 100 * time.Millisecond, HorizonSweep: 300 * time.Millisecond, Drain: 5 * time.Second,
	}
}

// takeAll takes n due entries from the index, as a scheduler does before it claims.
func (e *pairEnv) takeAll(now, until time.Time, n int) {
	now, until = core.CeilMilli(now), core.CeilMilli(until)
	if taker, ok := e.idx[0].(core.Taker); ok {
		taken, _, err := taker.Take(e.ctx, now, until, n)
		require.NoError(e, err, "Take")
		require.Len(e, taken, n, "entries taken")
		return
	}
	due, err := e.idx[0].Due(e.ctx, now, n)
	require.NoError(e, err, "Due")
	require.Len(e, due, n, "due entries")
	moves := make([]core.Move, len(due))
	for i, entry := range due {
		moves[i] = core.Move{ID: entry.ID, From: entry.Due, To: until}
	}
	require.NoError(e, e.idx[0].Move(e.ctx, moves), "Move")
}

// scheduler returns one of the processes; every run of its handler is recorded.
func (e *pairEnv) scheduler(idx core.TimeIndex, store core.Claimer, handler core.HandlerFunc, opt core.Options) *core.Scheduler {
	opt.Logger = slog.New(slog.DiscardHandler)
	opt.Observer = e.observer()
	s, err := core.New(idx, store, core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		e.mu.Lock()
		e.runs[job.Task.ID] = append(e.runs[job.Task.ID], run{time.Now(), job.Grant.Token, job.Attempt, job.Crashes})
		e.mu.Unlock()
		return handler(ctx, job)
	}), opt)
	require.NoError(e, err, "core.New")
	return s
}

func (e *pairEnv) observer() core.Observer {
	return core.Observer{
		Failed: func(op string, err error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.errs = append(e.errs, op+": "+err.Error())
			e.errs = e.errs[max(0, len(e.errs)-5):]
		},
		Settled: func(s core.Settlement, err error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.settled == nil {
				e.settled, e.given, e.lost = map[core.ID]int{}, map[core.ID]int{}, map[core.ID]int{}
			}
			switch {
			case err != nil:
				e.lost[s.Grant.ID]++
			case s.Outcome == core.Released:
				e.given[s.Grant.ID]++
			default:
				e.settled[s.Grant.ID]++
			}
		},
	}
}

// start runs s until stop is called or the case ends.
func (e *pairEnv) start(s *core.Scheduler) (stop func() error) {
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		e.guard(func() { ended <- s.Run(ctx) })
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	e.cleanup(func() { _ = stop() })
	return stop
}

// startAll starts a scheduler on each process's handles.
func (e *pairEnv) startAll(handler core.HandlerFunc, opt core.Options) (stop func()) {
	var stops []func() error
	for i := range processes {
		stops = append(stops, e.start(e.scheduler(e.idx[i], e.stores[i], handler, opt)))
	}
	return func() {
		for _, stop := range stops {
			require.NoError(e, stop(), "Run")
		}
	}
}

// until waits for ok, under the lock, and ends the case when it stays false.
func (e *pairEnv) until(about string, ok func() bool) {
	if !e.wait(func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return ok()
	}) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.Errorf("after %s: still not so: %s; %d ids have run; the last errors of the backends: %q", e.patience, about, len(e.runs), e.errs)
		e.FailNow()
	}
}

// ran returns how often the handler ran for id.
func (e *pairEnv) ran(id core.ID) []run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[id]
}

// measure finds out how far the store's clock may be before the process's.
func (e *pairEnv) measure() {
	clock, ok := e.stores[0].(core.TimeSource)
	if !ok {
		return
	}
	before := time.Now()
	now, err := clock.Now(e.ctx)
	require.NoError(e, err, "Now")
	e.ahead = now.Sub(before) + time.Millisecond // it may be cut to milliseconds
}

// storeNow is the earliest that the store's clock may show now; due times from
// here on are in the future or just past.
func (e *pairEnv) storeNow() time.Time {
	if clock, ok := e.stores[0].(core.TimeSource); ok {
		now, err := clock.Now(e.ctx)
		require.NoError(e, err, "Now")
		return now
	}
	return time.Now()
}

// wantNotEarly fails for each run that was certainly before due.
func (e *pairEnv) wantNotEarly(id core.ID, due time.Time) {
	for _, r := range e.ran(id) {
		if latest := r.at.Add(e.ahead); latest.Before(due) {
			e.Errorf("%q started %s before its due time by the store's clock, want never early", id, due.Sub(latest))
		}
	}
}

// wantNothingLeft fails unless the store has nothing that waits and a last look
// at now, when all leases are over, runs nothing and leaves the indexes empty.
// (An entry of a finished task may be left for that long: it costs one claim.)
func (e *pairEnv) wantNothingLeft(now time.Time) {
	waiting, err := e.stores[0].Waiting(e.ctx, endOfTime, core.Entry{}, endOfTime, 10)
	require.NoError(e, err)
	e.wantEntries(nil, waiting, "rows of the store that wait")
	for i := range processes {
		last := e.scheduler(e.idx[i], e.stores[i], func(context.Context, *core.Job) error { return nil }, quick())
		var left []core.Entry
		for range 20 { // rounds of at most a hundred ids
			n, err := last.Tick(e.ctx, now)
			require.NoError(e, err, "Tick")
			assert.Zero(e, n, "tasks that a last Tick ran")
			left, err = e.idx[i].Due(e.ctx, endOfTime, 10)
			require.NoError(e, err, "Due")
			if len(left) == 0 {
				break
			}
		}
		e.wantEntries(nil, left, "the index of process %d in the end", i)
	}
}

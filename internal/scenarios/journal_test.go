package scenarios

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// run is one call of a handler.
type run struct {
	worker            string
	due               time.Time
	token             int64
	attempt, crashes  int
	from, to          time.Time // to is zero while it runs
	cause             error     // why its ctx was cancelled, as seen at its end
	lateness          time.Duration
	overlapped        bool // another run of the id was under way when it began
	failuresAsOfStart int
}

// journal writes down what the schedulers of one test do.
type journal struct {
	mu        sync.Mutex
	runs      map[core.ID][]*run
	settled   map[core.ID]map[int64]int // Done that was accepted, by token
	refused   map[core.ID][]int64       // tokens of settlements that were refused
	released  map[core.ID]int
	failed    map[string]int // calls to backends, by operation
	claims    int            // batches put to the store
	lost      int            // leases
	swept     int            // pages of near sweeps
	unindexed int            // entries that the index could not be told
	busy      map[string]int // handlers under way, by worker
	most      map[string]int // and the most at once
}

func newJournal() *journal {
	return &journal{
		runs: map[core.ID][]*run{}, settled: map[core.ID]map[int64]int{}, refused: map[core.ID][]int64{},
		released: map[core.ID]int{}, failed: map[string]int{}, busy: map[string]int{}, most: map[string]int{},
	}
}

func (j *journal) locked(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
}

// done does nothing, successfully.
func done(context.Context, *core.Job) error { return nil }

// lasting works for d, deaf to its ctx.
func lasting(d time.Duration) core.HandlerFunc {
	return func(context.Context, *core.Job) error {
		time.Sleep(d)
		return nil
	}
}

func (j *journal) watched(worker string, handler core.HandlerFunc) core.HandlerFunc {
	return func(ctx context.Context, job *core.Job) error {
		r := &run{
			worker: worker, due: job.Task.Due, token: job.Grant.Token, attempt: job.Attempt, crashes: job.Crashes,
			from: time.Now(), lateness: job.Lateness(), failuresAsOfStart: job.Failures(),
		}
		j.locked(func() {
			for _, other := range j.runs[job.Task.ID] {
				r.overlapped = r.overlapped || other.to.IsZero()
			}
			j.runs[job.Task.ID] = append(j.runs[job.Task.ID], r)
			j.busy[worker]++
			j.most[worker] = max(j.most[worker], j.busy[worker])
		})
		err := handler(ctx, job)
		j.locked(func() {
			r.to, r.cause = time.Now(), context.Cause(ctx)
			j.busy[worker]--
		})
		return err
	}
}

func (j *journal) observer() core.Observer {
	return core.Observer{
		Claimed: func(core.ClaimStats) { j.locked(func() { j.claims++ }) },
		Settled: func(s core.Settlement, err error) {
			j.locked(func() {
				switch {
				case err != nil:
					j.refused[s.Grant.ID] = append(j.refused[s.Grant.ID], s.Grant.Token)
				case s.Outcome == core.Released:
					j.released[s.Grant.ID]++
				case s.Outcome == core.Done:
					if j.settled[s.Grant.ID] == nil {
						j.settled[s.Grant.ID] = map[int64]int{}
					}
					j.settled[s.Grant.ID][s.Grant.Token]++
				}
			})
		},
		LeaseLost:  func(*core.Job, error) { j.locked(func() { j.lost++ }) },
		Swept:      func(int, int) { j.locked(func() { j.swept++ }) },
		NotIndexed: func(n int, _ error) { j.locked(func() { j.unindexed += n }) },
		Failed:     func(op string, _ error) { j.locked(func() { j.failed[op]++ }) },
	}
}

// of returns a copy of the runs of an id.
func (j *journal) of(id core.ID) []run {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []run
	for _, r := range j.runs[id] {
		all = append(all, *r)
	}
	return all
}

// started is how many of ids have run.
func (j *journal) started(ids []core.ID) int {
	return j.those(ids, func(id core.ID) bool { return len(j.runs[id]) > 0 })
}

// completed is how many of ids have an accepted completion.
func (j *journal) completed(ids []core.ID) int {
	return j.those(ids, func(id core.ID) bool { return len(j.settled[id]) > 0 })
}

// those counts ids by what the journal has on them.
func (j *journal) those(ids []core.ID, are func(core.ID) bool) (n int) {
	j.locked(func() {
		for _, id := range ids {
			if are(id) {
				n++
			}
		}
	})
	return n
}

// counted returns one of the journal's numbers.
func (j *journal) counted(n *int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *n
}

// total is how many runs there were at all.
func (j *journal) total() (n int) {
	j.locked(func() {
		for _, runs := range j.runs {
			n += len(runs)
		}
	})
	return n
}

// wantOnce holds that each id ran once and was completed once, never early by
// more than a millisecond of two clocks on one machine.
func (j *journal) wantOnce(t *testing.T, ids []core.ID) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var wrong []core.ID
	for _, id := range ids {
		if len(j.runs[id]) != 1 || len(j.settled[id]) != 1 {
			wrong = append(wrong, id)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d did not run and complete once, such as %q: runs %d, completions %v",
			len(wrong), len(ids), wrong[0], len(j.runs[wrong[0]]), j.settled[wrong[0]])
	}
}

// wantOneCompletion holds that each id has one accepted completion, of its newest run, and
// that no token ran twice.
func (j *journal) wantOneCompletion(t *testing.T, ids []core.ID) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range ids {
		n := 0
		for _, times := range j.settled[id] {
			n += times
		}
		assert.Equal(t, 1, n, "%s: completions that were accepted", id)
		tokens := map[int64]bool{}
		for _, r := range j.runs[id] {
			assert.False(t, tokens[r.token], "%s: two runs under token %d", id, r.token)
			tokens[r.token] = true
		}
	}
}

// latest returns the greatest lateness of the first runs of ids.
func (j *journal) latest(ids []core.ID) (most time.Duration) {
	j.locked(func() {
		for _, id := range ids {
			if runs := j.runs[id]; len(runs) > 0 {
				most = max(most, runs[0].from.Sub(runs[0].due))
			}
		}
	})
	return most
}

// starts returns when the first runs of ids began, in order of time.
func (j *journal) starts(ids []core.ID) []time.Time {
	var all []time.Time
	j.locked(func() {
		for _, id := range ids {
			if runs := j.runs[id]; len(runs) > 0 {
				all = append(all, runs[0].from)
			}
		}
	})
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// options are quick ones with the given lease.
func options(lease time.Duration) core.Options {
	return core.Options{
		Lease: lease, Poll: 200 * time.Millisecond, NearSweep: 250 * time.Millisecond, HorizonSweep: 2 * time.Second,
		Drain: 5 * time.Second, Backoff: func(int) time.Duration { return 20 * time.Millisecond },
	}
}

// worker is a scheduler that runs.
type worker struct {
	t         *testing.T
	scheduler *core.Scheduler
	cancel    context.CancelFunc
	ended     chan error
	stopped   sync.Once
	err       error
}

// start runs a scheduler until it is stopped or the test ends.
func (j *journal) start(t *testing.T, name string, idx core.TimeIndex, store core.Claimer, handler core.HandlerFunc, opt core.Options) *worker {
	t.Helper()
	var mux core.Mux
	mux.Register("job", j.watched(name, handler))
	opt.Name, opt.Observer, opt.Logger = name, j.observer(), slog.New(slog.DiscardHandler)
	s, err := core.New(idx, store, &mux, opt)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker{t: t, scheduler: s, cancel: cancel, ended: make(chan error, 1)}
	go func() { w.ended <- s.Run(ctx) }()
	t.Cleanup(func() { _ = w.end() })
	return w
}

func (w *worker) end() error {
	w.stopped.Do(func() {
		w.cancel()
		w.err = <-w.ended
	})
	return w.err
}

// stop shuts it down, which must end well.
func (w *worker) stop() {
	w.t.Helper()
	require.NoError(w.t, w.end())
}

package core

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of batches. A claim of a few hundred ids is where databases are fastest;
// more only adds latency.
const (
	maxBatch       = 500
	maxClaims      = 3   // claims in flight
	maxSettles     = 4   // settle batches in flight
	sweepPage      = 500 // rows of a page of a near sweep
	sweepPages     = 20  // pages of a near sweep at most
	horizonPage    = 1000
	leastMove      = 100 * time.Millisecond // no verdict moves an entry nearer than this
	maxCallTimeout = 5 * time.Second
	setupPause     = time.Minute // between two tries to ask a backend for its set-up
)

// engine is one Run or Tick: its state and the parts that work on it, each in a
// file of its own (dispatch, claims, jobs, lease, settle, sweep, shutdown).
type engine struct {
	idx      TimeIndex
	store    Claimer
	handler  Handler
	opt      Options
	log      *slog.Logger
	obs      *hooks
	notices  *notices
	health   *healthBook
	clock    *clock
	undated  bool // see Undated
	failures *failureBook
	call     repeater // for the store; writes never carry Run's ctx
	beat     repeater // for heartbeats, before which other calls give way
	lane     lane
	index    repeater        // for the index, which may be away without harm
	base     context.Context // the handlers' contexts descend from it; never done
	holder   string          // start of each Lease.Holder
	holders  atomic.Uint64

	head    chan struct{} // poked when an earlier head came into the index
	room    chan struct{} // poked when a slot came free or a claim ended
	rebuild chan struct{} // poked when the index seems to have lost entries
	lost    chan struct{} // poked when the index says that it has lost entries
	fails   chan struct{} // poked when the index begins to fail
	taken   chan struct{} // poked when the index has answered a take, or failed it
	doubt   chan struct{} // poked when the store's clock may not be what it is thought to be
	sooner  chan struct{} // poked when a job came whose deadline is before lookAt
	stop    chan struct{} // closed when Run's ctx is done

	mu        sync.Mutex
	hand      map[ID]*Job // every id that this process has in hand
	abandoned map[ID]*Job // not in hand any more, but still to be settled
	used      int         // slots: reserved, waiting or running
	claims    int         // claims in flight
	limit     int         // ids in a claim; falls while claims fail, to isolate one that can't be claimed
	pause     time.Duration
	storeDown backoff
	wakeAt    time.Time     // store time until which dispatch sleeps
	lookAt    time.Duration // on the monotonic clock: when watchDeadlines looks next
	idxPause  time.Duration
	rewrite   time.Duration                          // on the monotonic clock: not before
	unwritten map[string]func(context.Context) error // by operation: see retryUnwritten
	overdue   []ID                                   // to be claimed without the index
	offered   bool                                   // the index's last take came back full, so that it may have more, or it was not asked yet
	idxFailed bool                                   // the last take failed
	stopping  bool                                   // no more starts
	refusals  map[ID]*refusal
	strangers map[string]*stranger
	rests     map[ID]time.Time // store time: back-offs that the store can't date

	ready readyJobs
	alarm *alarm

	starved bool // keepLeases' own: the last extension got no connection

	whole wholeSweeps          // nearSweep's own
	seen  map[ID]time.Duration // nearSweep's own: overdue rows, and since when on the monotonic clock

	far       Entry         // horizonSweep's own: how far it has looked for what ended
	lostTakes []lostTake    // dispatch's own
	found     takenBatch    // dispatch's own: what they had taken, to be claimed
	milli     time.Duration // see ownMilli

	settles settleQueue
	jobs    sync.WaitGroup // handlers
	claimWG sync.WaitGroup // claims in flight
	started atomic.Int64
}

// stranger is a kind that this process has no handler for.
type stranger struct {
	backoff backoff
	until   time.Time // store time at which those that were given back are due
}

func newEngine(s *Scheduler, ctx context.Context, c *clock, opt Options) *engine {
	if store, ok := s.store.(NoAhead); ok && store.NoAhead() {
		opt.Ahead = 0
	}
	e := &engine{
		idx: s.idx, store: s.store, handler: s.handler, opt: opt,
		log: opt.Logger, obs: s.obs, notices: &s.notices, health: s.health, clock: c,
		undated: isUndated(s.store), failures: &s.failures,
		base: context.WithoutCancel(ctx),
		// Unique in every run, so that a process that comes back under the same
		// name never takes the old one's leases for its own.
		holder: opt.Name + "." + rand.Text()[:13],
		head:   make(chan struct{}, 1), room: make(chan struct{}, 1), rebuild: make(chan struct{}, 1),
		lost: make(chan struct{}, 1), fails: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		doubt: make(chan struct{}, 1), sooner: make(chan struct{}, 1), stop: make(chan struct{}),
		hand: make(map[ID]*Job), abandoned: make(map[ID]*Job), limit: maxBatch,
		storeDown: backoff{least: 50 * time.Millisecond, most: 5 * time.Second},
		refusals:  make(map[ID]*refusal), strangers: make(map[string]*stranger),
		rests: make(map[ID]time.Time), unwritten: make(map[string]func(context.Context) error), alarm: newAlarm(),
		milli: time.Duration(mathrand.IntN(1000)) * time.Millisecond,
	}
	e.settles.init()
	e.call = repeater{
		timeout: min(maxCallTimeout, max(time.Second, opt.Lease/3)),
		tries:   6, // over three and a half seconds: a claim that took effect unseen costs a lease
		stop:    e.stop,
	}
	e.beat = e.call
	e.call.lane = &e.lane
	// Heartbeats wait for it: one that hangs must not cost a lease.
	e.index = repeater{timeout: min(time.Second, opt.Lease/6), tries: 1}
	return e
}

// nextHolder returns a Lease.Holder that no other claim has.
func (e *engine) nextHolder() string {
	return fmt.Sprintf("%s.%x", e.holder, e.holders.Add(1))
}

// leaseEndInIndex is where a held task stands in the index.
func leaseEndInIndex(until time.Time) time.Time { return until.Add(takeOverGrace) }

// margin is how long before the end of a lease its handler is cancelled.
func (e *engine) margin() time.Duration { return e.opt.Lease / 10 }

// heartbeat is the time between two extensions.
func (e *engine) heartbeat() time.Duration { return e.opt.Lease / 3 }

// poke wakes whoever waits on c.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// free gives n slots back.
func (e *engine) free(n int) {
	if n == 0 {
		return
	}
	e.mu.Lock()
	e.used -= n
	e.mu.Unlock()
	poke(e.room)
}

// drop forgets a job, so that its id may be claimed again.
func (e *engine) drop(jobs ...*Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range jobs {
		if e.hand[j.Grant.ID] == j {
			delete(e.hand, j.Grant.ID)
		}
		e.endAbandoned(j)
	}
}

// endAbandoned forgets a job that was abandoned. The caller holds the lock.
func (e *engine) endAbandoned(j *Job) {
	if e.abandoned[j.Grant.ID] == j {
		delete(e.abandoned, j.Grant.ID)
	}
}

// pauseStore keeps dispatch from claiming for a while after a call to the store
// failed.
func (e *engine) pauseStore() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.storeDown.failed()
	e.pause = e.clock.mono() + d
	e.limit = max(1, e.limit/2)
	return d
}

// tellFailed tells Observer's Failed of a call that says nothing of a backend's health.
// Nothing waits for it.
func (e *engine) tellFailed(op string, err error) {
	e.notices.add(func() { e.obs.failed(op, err) })
}

func (e *engine) storeOK() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.storeDown.ok()
	e.limit = min(maxBatch, e.limit*2)
}

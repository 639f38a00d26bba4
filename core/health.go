package core

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Health is what a Scheduler knows about its backends. All times in it are the
// process's own.
type Health struct {
	// Running: Run or Tick is at work. The rest is what they have found out so far.
	Running bool
	// Store and Index are the backends.
	Store, Index PartHealth
	// Sweep is the reading of the store for what the index doesn't have. While it
	// fails, a task that the index has lost waits.
	Sweep PartHealth
	// Swept is when a near sweep last ended well, zero before the first one.
	Swept time.Time
	// ClockOffset is how far the store's clock was ahead of this process's when it
	// was last read, less than the time that the reading took to arrive; tasks go by
	// the store's. ClockRead is when that was. Both are zero where the store has no
	// clock of its own, or was not reached yet.
	ClockOffset time.Duration
	ClockRead   time.Time
}

// ErrNotReady is what Ready returns, with the reason.
var ErrNotReady = errors.New("not ready")

// Ready returns nil while tasks can be run, for a readiness probe: Run is at work,
// the claim store has answered a first near sweep, and it still answers. An index
// that fails is no reason: sweeps go on without it, as Index and Sweep say. Its error
// wraps ErrNotReady and the newest failure.
func (h Health) Ready() error {
	switch {
	case !h.Running:
		return fmt.Errorf("dueclaim: %w: the scheduler is not running", ErrNotReady)
	case !h.Store.OK:
		return fmt.Errorf("dueclaim: %w: the claim store is failing since %s: %w",
			ErrNotReady, h.Store.Since.UTC().Format(time.RFC3339), h.Store.Err)
	case h.Swept.IsZero():
		return fmt.Errorf("dueclaim: %w: the claim store has not answered yet", ErrNotReady)
	}
	return nil
}

// PartHealth is the state of one part.
type PartHealth struct {
	// OK: no kind of call (take, claim, settle, …) failed when it was last made.
	// It is true before the first call.
	OK bool
	// Since is the process time of the last change of OK, zero if it never
	// changed.
	Since time.Time
	// Err is the newest failure while OK is false.
	Err error
	// LastErr is the newest failure ever and LastErrAt when it came, also while all
	// is well again.
	LastErr   error
	LastErrAt time.Time
}

// healthBook keeps the health and tells of changes.
type healthBook struct {
	log     *slog.Logger
	obs     *hooks
	notices *notices

	mu     sync.Mutex
	rest   Health // all but the parts
	storeP part
	indexP part
	sweepP part
}

// part is one backend's state: a database that reads but doesn't write is not
// well because a read succeeded, so each operation counts for itself.
type part struct {
	PartHealth
	failing map[string]time.Time // by operation: when it last failed
}

// staleFailure is how long a failed operation that nobody repeats is held against
// a backend that answers others.
const staleFailure = 30 * time.Second

func newHealthBook(log *slog.Logger, obs *hooks, n *notices) *healthBook {
	b := &healthBook{log: log, obs: obs, notices: n}
	for _, p := range []*part{&b.storeP, &b.indexP, &b.sweepP} {
		p.OK, p.failing = true, make(map[string]time.Time)
	}
	return b
}

func (b *healthBook) get() Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health()
}

func (b *healthBook) health() Health {
	h := b.rest
	h.Store, h.Index, h.Sweep = b.storeP.PartHealth, b.indexP.PartHealth, b.sweepP.PartHealth
	return h
}

func (b *healthBook) running(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest.Running = yes
}

// clock records a reading of the store's clock.
func (b *healthBook) clock(offset time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest.ClockOffset, b.rest.ClockRead = offset, time.Now()
}

func (b *healthBook) store(op string, err error) { b.call("store", op, err, &b.storeP) }
func (b *healthBook) index(op string, err error) { b.call("index", op, err, &b.indexP) }

// call records the result of a call to a backend. Answers about items are no
// failures of it.
func (b *healthBook) call(name, op string, err error, p *part) {
	if answered(err) {
		err = nil
	}
	if err != nil {
		b.notices.add(func() { b.obs.failed(name+": "+op, err) })
	}
	if errors.Is(err, ErrNoConnection) {
		return // it was not asked
	}
	b.note(name, op, err, p)
}

// sweep records the end of a near or a horizon sweep, whose calls were recorded
// each for itself.
func (b *healthBook) sweep(op string, err error) {
	b.note("sweep", op, err, &b.sweepP)
	if op == "near" && err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.rest.Swept = time.Now()
	}
}

// note records the result and tells of a change.
func (b *healthBook) note(name, op string, err error, p *part) {
	b.mu.Lock()
	changed := p.note(op, err)
	if changed { // under the lock, so that changes are told in their order
		h := b.health()
		b.notices.add(func() { b.tell(name, op, err, h) })
	}
	b.mu.Unlock()
}

func (b *healthBook) tell(name, op string, err error, h Health) {
	if err != nil {
		b.log.Warn("dueclaim: "+name+" failing; going on with back-off", "op", op, "err", err)
	} else {
		b.log.Info("dueclaim: " + name + " answers again")
	}
	b.obs.health(h)
}

func (p *part) note(op string, err error) (changed bool) {
	was := p.OK
	switch {
	case err != nil:
		p.failing[op] = time.Now()
		p.OK, p.Err = false, err
		p.LastErr, p.LastErrAt = err, time.Now()
	case !p.OK:
		delete(p.failing, op)
		for other, last := range p.failing {
			if time.Since(last) > staleFailure {
				delete(p.failing, other)
			}
		}
		if p.OK = len(p.failing) == 0; p.OK {
			p.Err = nil
		}
	}
	if changed = was != p.OK; changed {
		p.Since = time.Now()
	}
	return changed
}

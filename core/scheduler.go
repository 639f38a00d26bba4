package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Scheduler runs the tasks of one queue: it looks into a TimeIndex, claims from
// a Claimer and calls a Handler. Any number of Schedulers, in any processes, may
// share a queue.
type Scheduler struct {
	idx     TimeIndex
	store   Claimer
	handler Handler
	opt     Options
	obs     *hooks
	notices notices
	health  *healthBook
	busy    atomic.Bool

	failures failureBook // outlives a Tick
}

// New returns a Scheduler. It fails with ErrInvalid when a part is nil, an option
// is out of its range, or a Mux was filled wrongly. It doesn't touch the
// backends.
func New(idx TimeIndex, store Claimer, handler Handler, opt Options) (*Scheduler, error) {
	if err := checkParts(idx, store); err != nil {
		return nil, err
	}
	if err := checkHandler(handler); err != nil {
		return nil, fmt.Errorf("dueclaim: %w", err)
	}
	if err := checkUndated(idx, store); err != nil {
		return nil, err
	}
	opt, err := fixLease(opt, store)
	if err == nil {
		opt, err = opt.withDefaults()
	}
	if err != nil {
		return nil, fmt.Errorf("dueclaim: %w", err)
	}
	s := &Scheduler{idx: idx, store: store, handler: handler, opt: opt}
	s.obs = &hooks{Observer: opt.Observer, guard: newGuard(opt.Logger)}
	s.notices.log = opt.Logger
	s.health = newHealthBook(opt.Logger, s.obs, &s.notices)
	return s, nil
}

func checkHandler(h Handler) error {
	switch h := h.(type) {
	case nil:
		return fmt.Errorf("%w: the handler is nil; want one, such as a *core.Mux", ErrInvalid)
	case HandlerFunc:
		if h == nil {
			return fmt.Errorf("%w: the handler is a nil HandlerFunc", ErrInvalid)
		}
	case *Mux:
		if h == nil {
			return fmt.Errorf("%w: the handler is a nil *Mux", ErrInvalid)
		}
		return h.Err()
	}
	return nil
}

// Health returns what is known about the backends. It asks nobody, and may be
// called at any time.
func (s *Scheduler) Health() Health { return s.health.get() }

// ErrRunning says that Run or Tick was called while this Scheduler is running.
var ErrRunning = errors.New("this scheduler is running already; use one Scheduler for each Run")

// Run runs tasks until ctx is done, then shuts down and returns: nil, or an
// error when handlers still run or settlements could not be recorded (their
// leases lapse, and the tasks run again). It returns at once with ErrRunning when
// the Scheduler is running already.
//
// A backend that fails, even from the start, doesn't end Run: it goes on with
// back-off, and Health says so.
//
// The shutdown: no new claims; what was claimed and not started is given back;
// handlers may go on for Drain, with heartbeats; then their contexts are
// cancelled with the cause ErrDraining and they have 5 s more; then what was
// finished is recorded. Run has joined all goroutines that it started, except
// those of handlers that still run, which its error names.
func (s *Scheduler) Run(ctx context.Context) error {
	if !s.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("dueclaim: run: %w", ErrRunning)
	}
	defer s.busy.Store(false)
	defer s.notices.wait()
	s.health.running(true)
	defer s.health.running(false)
	e := newEngine(s, ctx, newClock(s.store), s.opt)
	return e.run(ctx)
}

// Tick does one round and returns how many tasks it started: it looks into the
// store and the index for what is due at now, claims at most Slots tasks, runs
// their handlers to their ends and records the results. It is for tests, which
// choose now, and for cron, which passes time.Now(); call it again while it
// returns more than 0 to go through a backlog.
//
// Results that can't be recorded are tried again for some ten seconds; then an
// error says how many there are, and the tasks run again when their leases are
// over.
//
// now stands for the store's clock; time passes from there while Tick works, so a
// task that is due a millisecond later may be run as well.
// When ctx is done, handlers are cancelled with the cause ErrDraining.
func (s *Scheduler) Tick(ctx context.Context, now time.Time) (int, error) {
	if !s.busy.CompareAndSwap(false, true) {
		return 0, fmt.Errorf("dueclaim: tick: %w", ErrRunning)
	}
	defer s.busy.Store(false)
	if err := CheckDue(now); err != nil {
		return 0, fmt.Errorf("dueclaim: tick: now: %w", err)
	}
	defer s.notices.wait()
	s.health.running(true)
	defer s.health.running(false)
	opt := s.opt
	opt.Ahead = 0
	e := newEngine(s, ctx, fixedClock(now), opt)
	n, err := e.tick(ctx)
	return n, wrapOp("tick", err)
}

// StillRunningError is Run's when handlers ignore their cancelled contexts.
type StillRunningError struct {
	// Tasks are those whose handlers still run; their leases lapse.
	Tasks []ID
}

// Error names the first few tasks.
func (e *StillRunningError) Error() string {
	const shown = 5
	var b strings.Builder
	fmt.Fprintf(&b, "%d handlers still run after the shutdown and their leases lapse:", len(e.Tasks))
	for i, id := range e.Tasks {
		if i == shown {
			b.WriteString(" …")
			break
		}
		fmt.Fprintf(&b, " %q", id)
	}
	return b.String()
}

package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ProducerOptions sets a Producer up. The zero value of each field stands for
// its default.
type ProducerOptions struct {
	// Timeout bounds one try of a call to the store; a call whose outcome is
	// unknown is tried five times. Default 5 s. Calls to the index get a fifth of
	// it, and so does a statement that calls share, before each goes on alone.
	Timeout time.Duration
	// Horizon is how far ahead tasks are put into the index; set it like the
	// schedulers' Options.Horizon. Default: unbounded.
	Horizon time.Duration
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
	// Observer is told what happens; of its funcs NotIndexed and Failed.
	Observer Observer
}

// Producer schedules, cancels and reschedules tasks. It needs no handlers, and
// nothing of it runs while none of its methods does: use it in a web process, beside
// or without a Scheduler. Its methods may be called concurrently.
//
// Every method writes to the store first and then to the index. Once the store
// has a task the method succeeds: an index that can't be told is observed and
// logged, and the schedulers' next sweep makes up for it.
type Producer struct {
	idx   TimeIndex
	store Claimer
	opt   ProducerOptions
	obs   *hooks
	clock *clock
	call  repeater

	gather gathering // calls of Schedule that wait for a statement to share

	mu        sync.Mutex
	skipIndex time.Duration // on the monotonic clock: the index failed, leave it alone until then
	untold    int           // tasks that the index could not be told of since the last line of the log
	untoldAt  time.Duration // on the monotonic clock: that line; 0: the index is well
	syncing   chan struct{} // full while a call reads the store's clock
}

// NewProducer returns a Producer on idx and store. On a Claimer that is no Store,
// as its tasks are rows of the user's own, Track works, and all else fails with
// ErrInvalid at once.
func NewProducer(idx TimeIndex, store Claimer, opt ProducerOptions) (*Producer, error) {
	if err := checkParts(idx, store); err != nil {
		return nil, err
	}
	opt.Timeout = cmp.Or(opt.Timeout, 5*time.Second)
	opt.Logger = guardedLogger(cmp.Or(opt.Logger, slog.Default()), lastResort)
	if opt.Timeout < 0 || opt.Horizon < 0 {
		return nil, fmt.Errorf("%w: ProducerOptions.Timeout is %v and Horizon %v; want positive durations, or 0 for the defaults", ErrInvalid, opt.Timeout, opt.Horizon)
	}
	p := &Producer{
		idx: idx, store: store, opt: opt, clock: newClock(store),
		obs:     &hooks{Observer: opt.Observer, guard: newGuard(opt.Logger)},
		call:    repeater{timeout: opt.Timeout, tries: 5},
		syncing: make(chan struct{}, 1),
	}
	p.call.notDone = p.readAgain
	p.gather.init(p.clock, p.fly)
	return p, nil
}

// Cancel cancels tasks and says of each id, in order, what it was. The zero Fate
// stands where the error, a *BatchError, names the item. [ErrNotDone]: nothing was
// cancelled. Any other error: the outcome is unknown, and a repeat tells.
//
// It also takes the index entries out. A task that another caller schedules under one of
// the ids at the same moment may lose its entry with them; a sweep then finds it, as any
// that the index has lost.
func (p *Producer) Cancel(ctx context.Context, ids ...ID) ([]Fate, error) {
	store, ok := p.store.(Store)
	if !ok {
		return nil, p.keepsNoTasks("cancel")
	}
	good := newBatch(ids, func(id ID) (ID, error) { return id, id.Check() })
	fates := make([]Fate, len(ids))
	if len(good.items) == 0 {
		return fates, wrapOp("cancel", good.err(nil))
	}
	now, err := p.now(ctx)
	if err != nil {
		return nil, wrapOp("cancel", err)
	}
	err = inPages(ctx, p.call, good.items, nil, func(ctx context.Context, ids []ID, places []int) error {
		got, err := store.Cancel(ctx, p.stamped(ctx, Call{Now: now}), ids)
		for i, fate := range got {
			fates[good.places[places[i]]] = fate
		}
		return err
	})
	if err != nil && !answered(err) {
		p.obs.failed("store: cancel", err)
		return nil, wrapOp("cancel", err)
	}
	var gone []Entry
	for i, fate := range fates {
		if fate == Cancelled || fate == WasRunning {
			gone = append(gone, Entry{ID: ids[i]}) // wherever it stands
		}
	}
	p.unindex(ctx, gone)
	return fates, wrapOp("cancel", good.err(err))
}

// Reschedule sets the due times of pending tasks, earlier or later. From, where
// it isn't zero, must be the present due time. The error is, or wraps, a
// *BatchError that names the items which were refused (ErrNotPending, ErrMoved,
// ErrInvalid, ErrBusy) while all others took effect, or [ErrNotDone] where nothing was
// changed; any other error: the outcome is unknown, and a repeat is harmless.
func (p *Producer) Reschedule(ctx context.Context, moves ...Move) error {
	store, ok := p.store.(Store)
	if !ok {
		return p.keepsNoTasks("reschedule")
	}
	good := newBatch(moves, func(m Move) (ID, error) {
		if err := m.ID.Check(); err != nil {
			return m.ID, err
		}
		return m.ID, CheckDue(m.To)
	})
	for i, m := range good.items {
		m.To = CeilMilli(m.To)
		if !m.From.IsZero() {
			m.From = CeilMilli(m.From)
		}
		good.items[i] = m
	}
	if len(good.items) == 0 {
		return wrapOp("reschedule", good.err(nil))
	}
	now, err := p.now(ctx)
	if err != nil {
		return wrapOp("reschedule", err)
	}
	err = inPages(ctx, p.call, good.items, nil, func(ctx context.Context, moves []Move, _ []int) error {
		return store.Reschedule(ctx, p.stamped(ctx, Call{Now: now}), moves)
	})
	if err != nil && !answered(err) {
		p.obs.failed("store: reschedule", err)
		return wrapOp("reschedule", err)
	}
	// An entry that stands too early costs one claim, so Add is enough.
	entries := accepted(good.items, err, func(m Move) Entry { return Entry{ID: m.ID, Due: m.To} })
	_ = p.index(ctx, entries) // observed there; the sweep makes up for it
	return wrapOp("reschedule", good.err(err))
}

// Track puts tasks that are in the store already into the index: rows that the
// caller inserted itself, after its transaction was committed. Rows that nobody
// tracks are found by the next sweep. The error is a *BatchError of invalid
// items (ErrInvalid; an IDChecker is asked too) while all others are tracked, or
// the index's: it may be ignored where the sweep's time is soon enough.
func (p *Producer) Track(ctx context.Context, entries ...Entry) error {
	good := newBatch(entries, func(e Entry) (ID, error) {
		if err := e.ID.Check(); err != nil {
			return e.ID, err
		}
		if err := p.checkID(e.ID); err != nil {
			return e.ID, err
		}
		return e.ID, CheckDue(e.Due)
	})
	for i := range good.items {
		good.items[i].Due = CeilMilli(good.items[i].Due)
	}
	return wrapOp("track", errors.Join(p.index(ctx, good.items), good.err(nil)))
}

// checkID asks the store, if it knows more about its ids than ID.Check.
func (p *Producer) checkID(id ID) error {
	c, ok := p.store.(IDChecker)
	if !ok {
		return nil
	}
	err := c.CheckID(id)
	if err != nil && !errors.Is(err, ErrInvalid) {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

// now returns the store's time, from a reading at most a minute old.
func (p *Producer) now(ctx context.Context) (time.Time, error) {
	if p.clock.lag() > time.Minute {
		select {
		case p.syncing <- struct{}{}:
		case <-ctx.Done(): // another caller waits for a store that doesn't answer
			return time.Time{}, fmt.Errorf("read the store's clock: %w", ctx.Err())
		}
		defer func() { <-p.syncing }()
		if p.clock.lag() > time.Minute {
			err := p.call.call(ctx, func(ctx context.Context) error {
				_, err := p.clock.sync(ctx, 0, 0)
				return err
			})
			if err != nil {
				return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
			}
		}
	}
	return FloorMilli(p.clock.now()), nil
}

// readAgain reads the store's clock: a call that was not done may have come too late by
// a reckoning that is no longer right.
func (p *Producer) readAgain(ctx context.Context) {
	_ = p.call.once(ctx, func(ctx context.Context) error {
		_, err := p.clock.sync(ctx, 0, 0)
		return err
	})
}

func (p *Producer) keepsNoTasks(op string) error {
	return fmt.Errorf("dueclaim: %s: %w: this claim store (%T) doesn't keep tasks; insert or change the row yourself, then call Track", op, ErrInvalid, p.store)
}

func checkParts(idx TimeIndex, store Claimer) error {
	switch {
	case idx == nil:
		return fmt.Errorf("dueclaim: %w: the time index is nil; want one, such as heapindex.New()", ErrInvalid)
	case store == nil:
		return fmt.Errorf("dueclaim: %w: the claim store is nil; want one, such as claim.NewMemory", ErrInvalid)
	}
	return nil
}

// wrapOp names the operation in err, which it keeps for errors.Is and errors.As.
func wrapOp(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dueclaim: %s: %w", op, err)
}

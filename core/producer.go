package core

import (
	"cmp"
	"context"
	"crypto/rand"
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
	// unknown is tried five times. Default 5 s. Calls to the index get a fifth
	// of it.
	Timeout time.Duration
	// Horizon is how far ahead tasks are put into the index; set it like the
	// schedulers' Options.Horizon. Default: unbounded.
	Horizon time.Duration
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
	// Observer is told what happens; of its funcs NotIndexed and Failed.
	Observer Observer
}

// Producer schedules, cancels and reschedules tasks. It has no goroutines and
// needs no handlers: use it in a web process, beside or without a Scheduler. Its
// methods may be called concurrently.
//
// Every method writes to the store first and then to the index. Once the store
// has a task the method succeeds: an index that can't be told is observed and
// logged, and the schedulers' next sweep makes up for it.
type Producer struct {
	idx   TimeIndex
	store Claimer
	opt   ProducerOptions
	clock *clock
	call  repeater

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
	opt.Logger = cmp.Or(opt.Logger, slog.Default())
	if opt.Timeout < 0 || opt.Horizon < 0 {
		return nil, fmt.Errorf("%w: ProducerOptions.Timeout is %v and Horizon %v; want positive durations, or 0 for the defaults", ErrInvalid, opt.Timeout, opt.Horizon)
	}
	return &Producer{
		idx: idx, store: store, opt: opt, clock: newClock(store),
		call:    repeater{timeout: opt.Timeout, tries: 5},
		syncing: make(chan struct{}, 1),
	}, nil
}

// OutcomeError says that a call's outcome stayed unknown: its tasks may or may
// not be stored.
type OutcomeError struct {
	// Call is what to pass to ScheduleCall, with the same tasks, to find out and
	// to store what is missing.
	Call Call
	// Err is the last failure.
	Err error
}

// Error says that the outcome is unknown, why, and what to do.
func (e *OutcomeError) Error() string {
	return fmt.Sprintf("outcome unknown, the tasks may be stored (repeat with ScheduleCall and the same tasks to make sure): %v", e.Err)
}

// Unwrap returns the last failure.
func (e *OutcomeError) Unwrap() error { return e.Err }

// Schedule stores tasks and puts them into the index. nil means that the store
// has them all. Else the error is, or wraps, a *BatchError that names the items
// which were refused (ErrExists, ErrInvalid: a field breaks a rule, or the id is
// twice in the batch; ErrBusy: the row of an earlier task of that id stayed
// locked) while all others are stored, or an *OutcomeError.
//
// A due time in the past is allowed: the task runs at once. Due times are
// rounded up to the millisecond. An id is unique among live tasks only: one whose
// task is done, dead or cancelled may be used again, and the new task runs.
func (p *Producer) Schedule(ctx context.Context, tasks ...Task) error {
	if _, ok := p.store.(Store); !ok { // before the clock is read
		return p.keepsNoTasks("schedule")
	}
	call, err := p.NewCall(ctx)
	if err != nil {
		return fmt.Errorf("dueclaim: schedule: %w", err)
	}
	return p.ScheduleCall(ctx, call, tasks...)
}

func taskBytes(t Task) int { return len(t.Payload) + len(t.Meta) }

// NewCall returns the Call for one insertion: for ScheduleCall, when the caller
// wants to repeat a call by itself, or for a store's InsertTx. Its error is that
// of reading the store's clock.
func (p *Producer) NewCall(ctx context.Context) (Call, error) {
	now, err := p.now(ctx)
	if err != nil {
		return Call{}, err
	}
	return Call{ID: rand.Text(), Now: now}, nil
}

// ScheduleCall is Schedule under a call that the caller chose. A repeat with the
// same call and tasks recognises what it has stored before, so it never stores
// a task twice and never fails with ErrExists because of itself, as long as the
// store keeps the rows.
func (p *Producer) ScheduleCall(ctx context.Context, call Call, tasks ...Task) error {
	store, ok := p.store.(Store)
	if !ok {
		return p.keepsNoTasks("schedule")
	}
	if err := call.Check(); err != nil {
		return fmt.Errorf("dueclaim: schedule: %w", err)
	}
	call.Now = FloorMilli(call.Now)
	good := newBatch(tasks, func(t Task) (ID, error) { return t.ID, t.Check() })
	for i := range good.items {
		good.items[i].Due = CeilMilli(good.items[i].Due)
	}
	if len(good.items) == 0 {
		return wrapOp("schedule", good.err(nil))
	}
	err := inPages(ctx, p.call, good.items, taskBytes, func(ctx context.Context, tasks []Task, _ []int) error {
		return store.Insert(ctx, p.stamped(call), tasks)
	})
	if errors.Is(err, ErrNotMigrated) {
		return wrapOp("schedule", err)
	}
	if err != nil && !answered(err) {
		p.opt.Observer.failed("store: insert", err)
		return wrapOp("schedule", errors.Join(&OutcomeError{Call: call, Err: err}, good.err(nil)))
	}
	entries := accepted(good.items, err, func(t Task) Entry { return Entry{ID: t.ID, Due: t.Due} })
	_ = p.index(ctx, entries) // observed there; the sweep makes up for it
	return wrapOp("schedule", good.err(err))
}

// stamped returns call with the present time. A new row's token starts from it: a
// time of minutes ago could lie below the tokens of a task of that id which was
// finished and deleted meanwhile.
func (p *Producer) stamped(call Call) Call {
	if p.clock.lag() < time.Hour {
		if now := FloorMilli(p.clock.now()); now.After(call.Now) {
			call.Now = now
		}
	}
	return call
}

// Cancel cancels tasks and says of each id, in order, what it was. The zero Fate
// stands where the error, a *BatchError, names the item. Any other error: the
// outcome is unknown, and a repeat tells.
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
		got, err := store.Cancel(ctx, now, ids)
		for i, fate := range got {
			fates[good.places[places[i]]] = fate
		}
		return err
	})
	if err != nil && !answered(err) {
		p.opt.Observer.failed("store: cancel", err)
		return nil, wrapOp("cancel", err)
	}
	// The index entries stay: they cost one claim each, answered Gone.
	return fates, wrapOp("cancel", good.err(err))
}

// Reschedule sets the due times of pending tasks, earlier or later. From, where
// it isn't zero, must be the present due time. The error is, or wraps, a
// *BatchError that names the items which were refused (ErrNotPending, ErrMoved,
// ErrInvalid, ErrBusy) while all others took effect; any other error: the outcome is
// unknown, and a repeat is harmless.
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
		return store.Reschedule(ctx, now, moves)
	})
	if err != nil && !answered(err) {
		p.opt.Observer.failed("store: reschedule", err)
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
// items (ErrInvalid; an IDChecker is asked too) while all others are tracked, or the index's: it may be ignored where the sweep's time is soon
// enough.
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

// index adds entries within the horizon. After a failure it leaves the index
// alone for a second, so that callers don't all wait for one that is away.
func (p *Producer) index(ctx context.Context, entries []Entry) error {
	if p.opt.Horizon > 0 {
		if now, err := p.now(ctx); err == nil {
			entries = within(entries, now.Add(p.opt.Horizon))
		}
	}
	if len(entries) == 0 {
		return nil
	}
	p.mu.Lock()
	skip := p.clock.mono() < p.skipIndex
	p.mu.Unlock()
	err := errIndexAway
	if !skip {
		// The store has the tasks: a caller who gave up shouldn't make them late.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opt.Timeout/5)
		defer cancel()
		if err = p.idx.Add(ctx, entries); err != nil {
			p.mu.Lock()
			p.skipIndex = p.clock.mono() + time.Second
			p.mu.Unlock()
		}
	}
	if err != nil {
		p.opt.Observer.notIndexed(len(entries), err)
	}
	p.logIndex(len(entries), err)
	return err
}

// logIndex logs the beginning of an outage of the index, how it goes once a minute,
// and its end.
func (p *Producer) logIndex(tasks int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		if p.untoldAt > 0 {
			p.opt.Logger.Info("dueclaim: index can be told again", "tasks_since_last_line", p.untold)
		}
		p.untold, p.untoldAt = 0, 0
		return
	}
	p.untold += tasks
	now := p.clock.mono()
	if p.untoldAt > 0 && now-p.untoldAt < time.Minute {
		return
	}
	p.opt.Logger.Warn("dueclaim: index can't be told; the sweeps will find the tasks", "tasks", p.untold, "err", err)
	p.untold, p.untoldAt = 0, now
}

var errIndexAway = errors.New("index failed less than a second ago and is left alone")

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

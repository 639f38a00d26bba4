package core

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// OutcomeError says that a call's outcome stayed unknown: its tasks may or may
// not be stored.
type OutcomeError struct {
	// Call is what to pass to ScheduleCall, with the same tasks, to find out and
	// to store what is missing. Calls of Schedule that shared a statement have the
	// same one.
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
// locked) while all others are stored, or an *OutcomeError. Any other error says
// that nothing was stored, such as [ErrNotDone] of a read-only server.
//
// A due time in the past is allowed: the task runs at once. Due times are
// rounded up to the millisecond. An id is unique among live tasks only: one whose
// task is done, dead or cancelled may be used again, and the new task runs. So ids that
// each process makes from the time, such as report@09:00, run again when a process is
// late; give these calls one Call (ScheduleCall).
//
// A call goes to the store at once, by itself, unless others are there already:
// calls that come while two of this Producer's are at the store wait for one of
// them, 100 ms at most, and then share one statement and one call to the index,
// each with an answer of its own. Calls of more than 100 tasks or 256 KiB of
// payloads neither wait nor share, nor does ScheduleCall. A ctx counts for its own
// call: while it waits, its end is that of the call, which has stored nothing; once
// the statement is under way it leaves an *OutcomeError and the others go on.
func (p *Producer) Schedule(ctx context.Context, tasks ...Task) error {
	store, ok := p.store.(Store)
	if !ok { // before the clock is read
		return p.keepsNoTasks("schedule")
	}
	call, err := p.NewCall(ctx)
	if err != nil {
		return wrapOp("schedule", err)
	}
	good := storable(tasks)
	switch {
	case len(good.items) == 0:
		err = good.err(nil)
	case !shareable(good.items):
		err = p.scheduleAlone(ctx, store, call, good, nil)
	case p.gather.enter():
		held := true
		leave := func() {
			if held {
				held = false
				p.gather.left()
			}
		}
		defer leave() // should the store panic
		err = p.scheduleAlone(ctx, store, call, good, leave)
	default:
		err = p.scheduleShared(ctx, store, call, good)
	}
	return wrapOp("schedule", err)
}

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
		return wrapOp("schedule", err)
	}
	call.Now = FloorMilli(call.Now)
	good := storable(tasks)
	if len(good.items) == 0 {
		return wrapOp("schedule", good.err(nil))
	}
	return wrapOp("schedule", p.scheduleAlone(ctx, store, call, good, nil))
}

func taskBytes(t Task) int { return len(t.Payload) + len(t.Meta) }

// storable returns the tasks that a store may be given, their times rounded.
func storable(tasks []Task) batch[Task] {
	good := newBatch(tasks, func(t Task) (ID, error) { return t.ID, t.Check() })
	for i := range good.items {
		good.items[i].Due = CeilMilli(good.items[i].Due)
	}
	return good
}

// scheduleAlone stores the tasks of one caller, again while the outcome is unknown,
// and tells the index of them. tried (nil: nothing) is called when a try has ended.
func (p *Producer) scheduleAlone(ctx context.Context, store Store, call Call, good batch[Task], tried func()) error {
	err := inPages(ctx, p.call, good.items, taskBytes, func(ctx context.Context, tasks []Task, _ []int) error {
		err := store.Insert(ctx, p.stamped(ctx, call), tasks)
		if tried != nil {
			tried()
		}
		return err
	})
	if notDone(err) {
		p.obs.failed("store: insert", err)
		return errors.Join(nothingStored(err), good.err(nil))
	}
	if err != nil && !answered(err) {
		return p.outcomeUnknown(call, err, good)
	}
	_ = p.index(ctx, accepted(good.items, err, entryOf)) // observed there; the sweep makes up for it
	return good.err(err)
}

func (p *Producer) outcomeUnknown(call Call, err error, good batch[Task]) error {
	p.obs.failed("store: insert", err)
	return errors.Join(&OutcomeError{Call: call, Err: err}, good.err(nil))
}

func entryOf(t Task) Entry { return Entry{ID: t.ID, Due: t.Due} }

// stamped returns call with the present time, and with the end of this try as the time
// after which it must have no effect.
func (p *Producer) stamped(ctx context.Context, call Call) Call {
	if p.clock.lag() < time.Hour {
		if now := FloorMilli(p.clock.now()); now.After(call.Now) {
			call.Now = now
		}
		call.By = p.clock.by(ctx)
	}
	return call
}

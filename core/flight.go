package core

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// flight is one statement for the tasks of several callers, and the call to the
// index that follows it.
//
// It decides what can be decided for all of them at once. Whatever else happens,
// each caller then goes on by itself, in its own goroutine, under its own ctx and
// the flight's call: one whose tasks the store can't take, waits for or panics over
// harms itself alone, as if it had come alone.
type flight struct {
	call   Call
	items  []Task
	crew   []*waiter
	ctx    context.Context // the first caller's values; done when nobody is aboard
	cancel context.CancelFunc

	// Guarded by the gathering's lock.
	aboard int  // callers who have not left
	over   bool // the insert has ended

	// Set before the flight has ended.
	err      error
	answered bool          // err is nil or names each item that failed; else it was for nothing
	failed   map[int]error // those, by their places
	told     bool          // the index was called, where answered
}

// fly runs a flight, in a goroutine which the last one aboard waits for.
func (p *Producer) fly(f *flight) {
	defer p.land(f)
	f.err = p.insertShared(f)
	var ofItems *BatchError
	f.answered = answered(f.err) && (f.err == nil || errors.As(f.err, &ofItems))
	p.gather.inserted(f)
	if f.answered {
		f.failed = itemErrors(f.err)
		_ = p.index(f.ctx, accepted(f.items, f.err, entryOf)) // observed there; the sweep makes up for it
		f.told = true
	}
}

// land ends a flight. What panicked comes up again where a caller repeats it.
func (p *Producer) land(f *flight) {
	if v := recover(); v != nil {
		p.opt.Logger.Error("dueclaim: panic in what calls of Schedule shared; each goes on by itself",
			"calls", len(f.crew), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
	p.gather.inserted(f) // should it have panicked
	f.cancel()
	for _, w := range f.crew {
		close(w.ended)
	}
}

// insertShared tries a shared insert once, and once more when it failed quickly, as
// one that lost a deadlock does. One that hangs may hang for a single caller's sake:
// it has a fifth of a try's time.
func (p *Producer) insertShared(f *flight) error {
	once := repeater{timeout: p.opt.Timeout / 5}
	for again, lost := false, false; ; again = true {
		slow := false
		err := once.once(f.ctx, func(ctx context.Context) error {
			err := p.store.(Store).Insert(ctx, p.stamped(ctx, f.call), f.items)
			slow = ctx.Err() != nil
			return err
		})
		if lost && notDone(err) {
			return partlyDone(err)
		}
		lost = !answered(err) && !notDone(err)
		if again || slow || answered(err) || errors.Is(err, ErrNotMigrated) || !sleep(f.ctx, nil, jitter(10*time.Millisecond)) {
			return err
		}
	}
}

// scheduleShared is scheduleAlone in company.
func (p *Producer) scheduleShared(ctx context.Context, store Store, call Call, good batch[Task]) error {
	if err := ctx.Err(); err != nil {
		return nothingStored(err)
	}
	w := p.gather.join(ctx, good.items)
	f, err := p.gather.wait(w)
	switch {
	case f == nil && err != nil:
		return nothingStored(err)
	case f == nil:
		return p.scheduleAlone(ctx, store, call, good, nil)
	case err != nil:
		return p.outcomeUnknown(f.call, err, good)
	case errors.Is(f.err, ErrNotMigrated):
		return nothingStored(f.err)
	case !f.answered:
		err := p.scheduleAlone(ctx, store, f.call, good, nil)
		if notDone(err) && !notDone(f.err) { // its own tries were not done, but the shared one may have been
			return p.outcomeUnknown(f.call, partlyDone(err), good)
		}
		return err
	}
	left, stored := f.shareOf(w, good)
	if !f.told {
		_ = p.index(ctx, stored)
	}
	if len(left.items) == 0 {
		return left.err(nil)
	}
	err = p.scheduleAlone(ctx, store, f.call, left, nil)
	if notDone(err) && len(stored) > 0 {
		return p.outcomeUnknown(f.call, partlyDone(err), left)
	}
	return err
}

func nothingStored(err error) error { return fmt.Errorf("nothing was stored: %w", err) }

// shareOf returns, of a flight's answer, what is w's, whose tasks are good: the ones
// that are left, as only their rows were locked, together with all that failed; and
// the entries of those that are stored.
func (f *flight) shareOf(w *waiter, good batch[Task]) (left batch[Task], stored []Entry) {
	left.bad = slices.Clone(good.bad)
	for i, t := range good.items {
		switch err := f.failed[w.from+i]; {
		case err == nil:
			stored = append(stored, entryOf(t))
		case errors.Is(err, ErrBusy):
			left.items, left.places = append(left.items, t), append(left.places, good.places[i])
		default:
			left.bad = append(left.bad, ItemError{Index: good.places[i], ID: t.ID, Err: err})
		}
	}
	slices.SortStableFunc(left.bad, func(x, y ItemError) int { return x.Index - y.Index })
	return left, stored
}

package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// answered tells whether err is an answer of the backend about every item
// (success included), as opposed to a failure with an unknown outcome.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var batch *BatchError
	if !errors.As(err, &batch) {
		return isAnswer(err)
	}
	for _, item := range batch.Items { // one by one: errors.Is(batch, …) means "some item"
		if !isAnswer(item.Err) && !errors.Is(item.Err, ErrBusy) {
			return false
		}
	}
	return true
}

// isAnswer tells whether err is one of the sentinels that a repeat of the call
// would not change.
func isAnswer(err error) bool {
	for _, s := range []error{ErrExists, ErrLeaseLost, ErrNotPending, ErrMoved, ErrInvalid, ErrUnfinished} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// notDone tells whether err proves that its call had no effect at all.
func notDone(err error) bool { return errors.Is(err, ErrNotDone) || errors.Is(err, ErrNotMigrated) }

// isBusy tells whether some item of err was only locked.
func isBusy(err error) bool { return errors.Is(err, ErrBusy) }

// repeater calls a backend again, with the same arguments, while the outcome is
// unknown. The contract makes every repeat harmless.
type repeater struct {
	timeout time.Duration   // of one try
	tries   int             // at least 1
	stop    <-chan struct{} // closed: at most triesAfterStop in all; nil: never
	// notDone is called when a try was not done at all, before the next, though the
	// backend was asked; nil: nothing.
	notDone func(ctx context.Context)
	lane    *lane // what each try waits at before its time begins; nil: nothing
}

// triesAfterStop is how many tries a call has when a shutdown came upon it: what
// took effect unseen would be known too late by all others.
const triesAfterStop = 3

// call runs f until it is answered, with a growing, jittered pause between tries.
// It returns the last error.
//
// Once a try's outcome is unknown, tries that were not done don't count: there may be
// something to find, which costs a lease if it isn't found. A shutdown doesn't wait for
// them.
func (r repeater) call(ctx context.Context, f func(ctx context.Context) error) error {
	unknown := false
	for try, uncounted := 1, 0; ; try++ {
		err := r.once(ctx, f)
		if answered(err) && !isBusy(err) || errors.Is(err, ErrNotMigrated) {
			return err
		}
		switch {
		case !notDone(err):
			unknown = unknown || !answered(err)
		case unknown && uncounted < triesNotDone && !closed(r.stop):
			uncounted++
			try--
		}
		if try >= r.tries {
			return err
		}
		if r.notDone != nil && errors.Is(err, ErrNotDone) && !errors.Is(err, ErrNoConnection) {
			r.notDone(ctx)
		}
		pause, stop := jitter(10*time.Millisecond<<(2*max(0, try-1))), r.stop
		if try < triesAfterStop {
			stop = nil
		}
		if !sleep(ctx, stop, pause) {
			return err
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// triesNotDone is how many tries, of a call with an unknown outcome, may go uncounted.
const triesNotDone = 10

func (r repeater) once(ctx context.Context, f func(ctx context.Context) error) error {
	if r.lane != nil {
		r.lane.pass(ctx, 2*r.timeout) // by then whatever stood before the heartbeat has ended
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return f(ctx)
}

// jitter returns a random duration between half of d and d.
func jitter(d time.Duration) time.Duration {
	if d <= 1 {
		return d
	}
	return d/2 + rand.N(d/2)
}

// sleep waits for d; false when ctx is done or stop is closed before.
func sleep(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	}
}

// backoff is the growing pause of a loop whose backend fails.
type backoff struct {
	least, most time.Duration
	fails       int
}

// failed counts a failure and returns how long to pause.
func (b *backoff) failed() time.Duration {
	d := b.most
	if b.fails < 20 {
		d = min(b.most, b.least<<b.fails)
	}
	b.fails++
	return jitter(d)
}

func (b *backoff) ok() { b.fails = 0 }

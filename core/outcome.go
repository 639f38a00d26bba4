package core

import (
	"context"
	"errors"
	"time"
)

// ending is what a handler's answer says about its task, before the task's own counts
// are looked at.
type ending struct {
	way way
	// at is the latest time that a RetryAt in the answer names, zero where none does:
	// the task is not due again before it.
	at time.Time
	// said is what the handler says it settled (wayBySelf); its Outcome is zero where the
	// handler did not say.
	said Settlement
}

// way is how a task goes on.
type way uint8

const (
	wayFailed  way = iota // retried after a back-off, or dead when it failed as often as it may
	wayDone               // finished
	wayBySelf             // the handler has settled it
	wayDrained            // given back, as the scheduler shuts down
	wayExpired            // given back, as its lease could not be extended
	wayDead               // given up
	wayUnknown            // given back, for a process that knows its kind
)

// endingOf decides what a handler's answer means. cause is why its context was
// cancelled, nil if it was not. The first line that fits counts; "has" means anywhere
// in the answer, wrapped or joined, in whatever order:
//
//	answer                                          | goes on as
//	------------------------------------------------+--------------------------------------------
//	nil                                             | done
//	Settled or SettledAs alone, wrapped perhaps     | settled: the index is tidied up
//	has ErrDraining or context.Canceled, and cause  |
//	is the shutdown                                 | given back at once, not counted
//	has context.Canceled or that very cause, and    |
//	cause is a lease that could not be extended     | given back after a second, not counted
//	has Dead                                        | dead
//	has ErrUnknownKind                              | given back after its kind's pause, not counted
//	all else                                        | a failure: retried, or dead at MaxAttempts
//
// A time that a RetryAt names holds in each line but the first two and that of Dead, and of
// several the latest: "not before" is what each of them says, and the one nearest to
// the cause (a server's Retry-After, say) must not be lost because a middleware
// outside of it names an earlier one.
//
// Settled beside anything else is as good as not there: whether the task was settled
// the store knows, which then leaves it as it is. If the word of the handler were taken
// for it, a task that was not settled would stand until its lease ends.
//
// A deploy sends nothing to the dead, so the shutdown comes before Dead. Dead comes
// before ErrUnknownKind so that a program can say that kinds nobody knows are dead.
func endingOf(err, cause error) ending {
	if err == nil {
		return ending{way: wayDone}
	}
	if said, alone := settledAlone(err); alone {
		return ending{way: wayBySelf, said: said}
	}
	var a answer
	a.read(err)
	e := ending{at: a.latest}
	switch {
	case errors.Is(cause, ErrDraining) && (errors.Is(err, ErrDraining) || errors.Is(err, context.Canceled)):
		e.way = wayDrained
	case errors.Is(cause, errLeaseExpired) && (errors.Is(err, errLeaseExpired) || errors.Is(err, context.Canceled)):
		e.way = wayExpired // the database was away, not the task at fault
	case a.dead:
		e.way = wayDead
	case errors.Is(err, ErrUnknownKind):
		e.way = wayUnknown
	}
	return e
}

// answer is what there is of this package's own in an error.
type answer struct {
	latest time.Time // of all RetryAt
	dead   bool
}

// read walks through all of err, as errors.As does, which stops at the first.
func (a *answer) read(err error) {
	switch e := err.(type) { //nolint:errorlint // each level is looked at
	case *retryAtError:
		if e.at.After(a.latest) {
			a.latest = e.at
		}
	case *deadError:
		a.dead = true
	}
	for _, inner := range unwrap(err) {
		a.read(inner)
	}
}

// settledAlone tells whether err is Settled or SettledAs and nothing else, and what the
// handler says it settled, if it says so once.
func settledAlone(err error) (said Settlement, alone bool) {
	switch e := err.(type) { //nolint:errorlint // each level is looked at
	case *settledError:
		return e.s, true
	case *retryAtError, *deadError:
		return said, false
	}
	inner := unwrap(err)
	if len(inner) == 0 {
		return said, errors.Is(err, Settled)
	}
	for i, one := range inner {
		s, ok := settledAlone(one)
		if !ok {
			return Settlement{}, false
		}
		if i == 0 {
			said = s
		} else if s != said {
			said = Settlement{}
		}
	}
	return said, true
}

// unwrap returns the errors right inside err.
func unwrap(err error) []error {
	switch e := err.(type) { //nolint:errorlint // it is what errors.Is does
	case interface{ Unwrap() []error }:
		var all []error
		for _, inner := range e.Unwrap() {
			if inner != nil {
				all = append(all, inner)
			}
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	}
	return nil
}

// settlementOf turns a handler's answer, whose text is text, into what the store is
// to be told.
func (e *engine) settlementOf(j *Job, end ending, text string) Settlement {
	now := e.clock.now()
	notBefore := func(t time.Time) time.Time {
		if t.Before(end.at) {
			t = end.at
		}
		return dueAgain(t, now)
	}
	switch end.way {
	case wayDone:
		return Settlement{Outcome: Done}
	case wayUnknown:
		return Settlement{Outcome: Released, Due: notBefore(e.strange(j.Task.Kind, now, text))}
	case wayDrained:
		return Settlement{Outcome: Released, Due: notBefore(now)}
	case wayExpired:
		return Settlement{Outcome: Released, Due: notBefore(now.Add(time.Second))}
	case wayDead:
		return Settlement{Outcome: DeadLetter, Err: StorableText(text)}
	}
	failures := j.Failures() + 1
	most := j.Task.MaxAttempts
	if most == 0 {
		most = e.opt.MaxAttempts
	}
	if failures >= most {
		return Settlement{Outcome: DeadLetter, Err: StorableText(text)}
	}
	due := end.at
	if due.IsZero() {
		due = now.Add(max(0, e.backoff(failures)))
	}
	return Settlement{Outcome: Retry, Due: dueAgain(due, now), Err: StorableText(text)}
}

// backoff is Options.Backoff, or the default where that panics.
func (e *engine) backoff(failures int) (d time.Duration) {
	d = fullJitter(failures)
	defer e.obs.guard.catch("Options.Backoff")
	d = e.opt.Backoff(failures)
	return d
}

// dueAgain makes t a due time that a store can hold, not before now.
func dueAgain(t, now time.Time) time.Time {
	if t.Before(now) {
		t = now
	}
	if last := endDue.Add(-time.Millisecond); t.After(last) {
		t = last
	}
	return CeilMilli(t)
}

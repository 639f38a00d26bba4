package core

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Handler does the work of tasks. What Handle returns decides how the task goes
// on. It may be wrapped and joined in any way; the first line that fits counts:
//
//   - nil: done, unless the claim store says [ErrUnfinished].
//   - [Settled] or [SettledAs], with nothing else beside it: the handler has settled
//     the task itself, in its own transaction.
//   - an error that has [ErrDraining] or [context.Canceled] in it, after ctx was
//     cancelled because the scheduler shuts down: given back, the attempt is not
//     counted. So it is after a lease that could not be extended.
//   - [Dead]: given up at once and kept for an operator.
//   - [ErrUnknownKind]: given back for a process that knows the kind, after a pause;
//     the attempt is not counted.
//   - any other error: a failure. The task is retried after a back-off, or dead when
//     it has had as many failures as it may ([Task].MaxAttempts).
//
// A time that [RetryAt] names holds wherever the task comes again: a failure is retried
// then, and what is given back is not due before. Of several times the latest counts.
//
// A panic is a failure whose text has the stack.
//
// ctx is cancelled when the task is no longer the handler's to finish: its lease
// ran out or was lost (cause [ErrLeaseLost]), or the scheduler shuts down and
// [Options].Drain is over (cause [ErrDraining]). A handler that goes on
// regardless may overlap with another run of the task; its completion is then
// refused.
type Handler interface {
	Handle(ctx context.Context, job *Job) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, job *Job) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, job *Job) error { return f(ctx, job) }

// Job is one attempt at a task. Its exported fields are set once and are the
// handler's to read.
type Job struct {
	// Task is the task; Task.Due is when this attempt was planned for.
	Task Task
	// Grant is the proof of the claim. Grant.Token rises with every grant of the
	// id: pass it on to outside systems that can refuse older ones.
	Grant Grant
	// Attempt counts the grants that were not released, this one included. Where
	// the claim store doesn't count, it is 1 + Crashes + the failures that this
	// process has seen.
	Attempt int
	// Crashes counts those of them whose lease ran out before they were settled.
	Crashes int

	clock     *clock
	notBefore time.Time    // store time: the later of Task.Due and Claimed.NotBefore
	deadline  atomic.Int64 // ns on the process's monotonic clock, see clock.mono
	lateness  time.Duration

	// What follows is the engine's, under its lock.
	ctx        context.Context
	cancel     context.CancelCauseFunc
	state      jobState
	leaseUntil time.Time     // store time
	standing   time.Time     // where the index has the task, as far as is known
	settling   time.Duration // on the monotonic clock, since when a settlement is tried
	lost       bool
	uncounted  bool // the store doesn't count attempts
	superseded bool // abandoned, and this process has a newer grant of the id
	saidLost   bool // the handler returned ErrLeaseLost; set before it is settled

	end settlement // once its handler has returned; the settlers' own
}

type jobState uint8

const (
	claiming  jobState = iota // reserved by this process, no answer yet
	waiting                   // granted, not started
	running                   // in the handler
	settling                  // the handler has returned
	abandoned                 // not settled for longer than a lease
)

// Failures returns how many attempts have failed before this one.
func (j *Job) Failures() int { return max(0, j.Attempt-1-j.Crashes) }

// Lateness returns how long after Task.Due the handler was started, by the
// store's clock; never negative.
func (j *Job) Lateness() time.Duration { return j.lateness }

// Deadline returns the process time at which ctx is cancelled unless the lease
// is extended before. It moves on with every heartbeat.
func (j *Job) Deadline() time.Time {
	return time.Now().Add(time.Duration(j.deadline.Load()) - j.clock.mono())
}

// Now returns the store's time, as far as this process knows it: the time to
// pass to a store's SettleTx. Of a Job that no scheduler made it is the process's.
func (j *Job) Now() time.Time {
	if j.clock == nil {
		return FloorMilli(time.Now())
	}
	return FloorMilli(j.clock.now())
}

// Done returns the settlement that completes the task, for a store's SettleTx.
func (j *Job) Done() Settlement { return Settlement{Grant: j.Grant, Outcome: Done} }

// Settled is what a handler returns after it has settled the task itself:
// SettleTx as the last statement of its own transaction, committed. The
// scheduler then only tidies up, and can't tell when that is untrue: such a task
// runs again when its lease is over, as after a crash. Nor can it tell how the task
// was settled: Observer's Settled gets a Settlement without an Outcome, and one that was
// settled as Retry or Released waits for a sweep. [SettledAs] says it.
//
// Joined with another error, or inside of RetryAt or Dead, it doesn't count: the task
// goes on by the other error, unless the store knows that it was settled.
//
// When the commit's outcome is unknown return the commit's error: a task that was
// settled after all stays as it is. A handler that runs its transaction again
// instead is safe too: SettleTx then fails with ErrLeaseLost where the first one was
// committed; roll back, and return that error.
//
//nolint:revive,staticcheck // it is an outcome that is said through error, not a failure
var Settled = errors.New("settled by the handler")

// SettledAs is [Settled] for a handler that says what it settled: s is the Settlement
// that it gave to SettleTx, such as job.Done(). Observer's Settled gets it, and the index
// learns when the task is due again. One of another grant, or that [Settlement.Check]
// refuses, counts as Settled. errors.Is(err, Settled) is true for it.
func SettledAs(s Settlement) error { return &settledError{s: s} }

type settledError struct{ s Settlement }

func (e *settledError) Error() string     { return Settled.Error() + " as " + e.s.Outcome.String() }
func (e *settledError) Is(err error) bool { return err == Settled } //nolint:errorlint // it is what errors.Is asks

// ErrUnknownKind is what a handler returns for a task whose kind it doesn't
// know; [Mux] does. The task is given back for a process that does, without
// counting the attempt.
var ErrUnknownKind = errors.New("no handler for this kind")

type retryAtError struct {
	at  time.Time
	err error
}

func (e *retryAtError) Error() string { return e.err.Error() }
func (e *retryAtError) Unwrap() error { return e.err }

// RetryAt makes err a failure that is retried at t (at once where t is past),
// instead of after the usual back-off; a zero t names no time. MaxAttempts applies.
// Where an error has several, inside of each other or joined, the latest time counts:
// an outer one puts a retry off and doesn't hasten it. Around an error that gives the
// task back ([ErrUnknownKind], say) it says before when it is not due again; a
// [Dead] stays dead. A nil err is replaced by a text that says so.
func RetryAt(t time.Time, err error) error {
	if err == nil {
		err = errors.New("retry asked for by the handler")
	}
	return &retryAtError{at: t, err: err}
}

type deadError struct{ err error }

func (e *deadError) Error() string { return e.err.Error() }
func (e *deadError) Unwrap() error { return e.err }

// Dead makes err a failure that is not retried, also with a RetryAt inside of it or
// around: the task is kept as dead. A nil err is replaced by a text that says so.
func Dead(err error) error {
	if err == nil {
		err = errors.New("given up by the handler")
	}
	return &deadError{err: err}
}

// panicError is a handler's panic or runtime.Goexit as an error.
type panicError struct {
	value string
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %s\n%s", e.value, e.stack) }

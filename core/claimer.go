package core

import (
	"context"
	"time"
)

// Claimer says who may run: the record of truth about each task of one queue.
//
// A task in it is pending, running (granted to one holder until the end of its
// lease), done, dead or cancelled. A running task whose lease ended before the
// claim's Now may be granted again.
//
// Rules for implementations (MUST), each with a conformance case:
//
//   - All methods may be called concurrently, from any number of processes.
//   - Each transition is one conditional write, guarded by the state and, for a
//     holder, by token and holder; nothing matches by id alone.
//   - Slices hold each id at most once (core sees to it), may have any length,
//     and belong to the caller again after the return; so does the memory of
//     what is returned. They are not written to, nor put into another order. An
//     empty slice is a no-op that returns nil.
//   - All times are UTC and whole milliseconds; core rounds. An implementation
//     reads no clock, doesn't retry and doesn't log.
//   - Items fail one by one: a *BatchError names those that failed with a
//     sentinel each, all others took effect. An error that wraps ErrNotDone says
//     that no item took effect. Any other error means an unknown outcome: each
//     item may or may not have taken effect. Core repeats the call in both cases,
//     with the same arguments but a later By. A repeat is harmless.
//   - A call that carries an instant By (Lease, Call) has no effect once the store's
//     clock is past it, wherever it was held up: at a locked row or table, in a
//     proxy, on the network. Its caller has given it up by then and gone on.
//   - No method waits for a locked row beyond ctx, and with a ctx that is
//     already done none does anything.
//   - No lock is held and no transaction is open when a method has returned.
type Claimer interface {
	// Claim tries to get a lease for each id and returns one verdict for each,
	// in the order of ids. A task is granted when it is pending, or running with
	// a lease that ended before lease.Now, and its due time is at or before
	// lease.DueBy. The grant's token is higher than every earlier one of that
	// id. A row that is locked by another transaction may be answered Refused.
	//
	// A repeat with the same lease.Holder finds what the first call was granted,
	// as it was stored (also where that lease has ended meanwhile, as long as
	// nobody else was granted the task), and is granted what it had missed.
	Claim(ctx context.Context, ids []ID, lease Lease) ([]Claimed, error)
	// Extend moves the end of each lease to until; it never shortens one. It
	// decides by token and holder, not by time: a lease that ended but was not
	// granted to anybody since is extended. Items that are no longer theirs fail
	// with ErrLeaseLost. One locked row never holds up the others: it may fail
	// with ErrBusy and is as it was.
	Extend(ctx context.Context, grants []Grant, until time.Time) error
	// Settle ends grants. It decides by token and holder, not by time: the newest
	// holder's late settle counts, an older holder's fails with ErrLeaseLost,
	// always. A repeat by the same holder of a task that it settled, and that
	// nobody was granted or changed since, is a success that changes nothing; on
	// a task that is no longer there, or was cancelled, it fails with
	// ErrLeaseLost. A locked row may fail with ErrBusy and is as it was.
	Settle(ctx context.Context, now time.Time, settlements []Settlement) error
	// Waiting returns up to limit rows that are due before the bound and that
	// nobody holds at now (pending, or running with a lease that ended before
	// now), ordered by due time, then by the bytes of the id, strictly after
	// `after` (the zero Entry: from the start). Entry.Due is the row's due time.
	// limit counts the rows that are returned: running rows at the head never
	// hide those behind them. The cost is bounded by limit and the number of
	// running tasks, however long the backlog.
	Waiting(ctx context.Context, now time.Time, after Entry, before time.Time, limit int) ([]Entry, error)
}

// Store is a Claimer that also keeps the tasks themselves.
type Store interface {
	Claimer
	// Insert stores tasks as pending. An id whose task is live (pending or
	// running) fails with ErrExists; one whose task is done, dead or cancelled is
	// replaced, its token going on from there. A repeat with the same call.ID
	// recognises its own earlier success, whatever became of the task since, and
	// succeeds for it without a change, on live rows and on finished ones that
	// are still there. Tokens go on rising for an id that is used again after its
	// row was deleted, whatever call.Now is: the first one comes from the store's own
	// clock, in microseconds, at the moment of the change, or from a sequence.
	Insert(ctx context.Context, call Call, tasks []Task) error
	// Cancel cancels each task that is pending or running and says for each id,
	// in order, what it was. A repeat gives the same fates as long as the rows
	// are there. The holder of a running task learns of it by ErrLeaseLost. A
	// locked row may fail with ErrBusy and is as it was; its fate is then zero.
	// call.ID has no part in it.
	Cancel(ctx context.Context, call Call, ids []ID) ([]Fate, error)
	// Reschedule sets the due time of pending tasks. A task that isn't pending
	// or isn't there fails with ErrNotPending; one whose due time is not From
	// (where From isn't zero) fails with ErrMoved, except that one which already
	// is at To is a success. call.ID has no part in it.
	Reschedule(ctx context.Context, call Call, moves []Move) error
}

// TimeSource is an optional capability of a Claimer: the backend's own clock,
// which all schedulers of a queue then share. A Claimer without it leaves them
// to their process clocks.
type TimeSource interface {
	// Now returns the backend's current time, at least to the millisecond.
	Now(ctx context.Context) (time.Time, error)
}

// Purger is an optional capability of a Store that keeps finished rows.
type Purger interface {
	// Purge deletes up to limit done or cancelled rows that were finished before
	// `before` and returns how many. Dead rows stay until they are replaced by an
	// Insert or deleted by the operator. Locked rows are passed over.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
}

// NoAhead is an optional capability of a Claimer whose grants can't tell every
// back-off (Claimed.NotBefore), as it stands in no column. With such a store nothing is
// claimed before its time, as if Options.Ahead were negative: tasks start a millisecond
// or two late instead of on the dot, and never early. It is asked once, when Run or Tick
// begins.
type NoAhead interface {
	NoAhead() bool
}

// Prober is an optional capability of a Claimer whose server may go on answering
// reads while it refuses writes, as after a failover.
type Prober interface {
	// Probe returns nil where the store would take a write at this moment, else the
	// reason. It changes no row and waits for no lock of one. Core calls it with
	// heartbeats that had nothing to extend, and Health goes by it.
	Probe(ctx context.Context) error
}

// IDChecker is an optional capability of a Claimer whose ids are narrower than
// ID: integers, UUIDs.
type IDChecker interface {
	// CheckID returns nil, or an error (ErrInvalid) that says why no task of the
	// store can have this id. It is called with ids that pass ID.Check, and asks
	// no backend.
	CheckID(id ID) error
}

// Call is what a call of Insert, Cancel or Reschedule carries beside its items.
type Call struct {
	// ID is unique to this call of Insert; 1 to 64 bytes of printable ASCII. Cancel
	// and Reschedule don't use it.
	ID string
	// Now is the store's time, as the caller knows it. A later try of the same call
	// may have a later one.
	Now time.Time
	// By is when the call's caller gives it up, by the store's clock: a store whose
	// clock is past By changes nothing and answers ErrNotDone. Zero: never.
	By time.Time
}

// Lease is what a call of Claim asks for.
type Lease struct {
	// Holder is unique to this call of Claim; 1 to 64 bytes of printable ASCII.
	Holder string
	// Now bounds take-overs: leases that ended before it are over. Core passes
	// the store's time less a grace.
	Now time.Time
	// DueBy bounds what is granted: tasks due at or before it.
	DueBy time.Time
	// Until is the end of the new lease.
	Until time.Time
	// By is when the call's caller gives it up, by the store's clock: a store whose
	// clock is past By grants nothing and answers ErrNotDone. Zero: never. Without it,
	// a claim that was held up would grant tasks to nobody, until the leases end.
	By time.Time
}

// Verdict is a Claimer's answer about one id.
type Verdict uint8

// The verdicts. The zero Verdict is none of them.
const (
	// Granted: the caller holds the task under Claimed.Grant.
	Granted Verdict = iota + 1
	// Held: somebody has a lease; Claimed.At is its end.
	Held
	// NotDue: the task is due later; Claimed.At says when.
	NotDue
	// Gone: there is no such task, or it is done, dead or cancelled.
	Gone
	// Refused: the task looks claimable, but the store would not change it: a
	// row locked by somebody, a trigger, row security. Or the id can't be one of
	// the store's; Claimed.Err may say why.
	Refused
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case Granted:
		return "Granted"
	case Held:
		return "Held"
	case NotDue:
		return "NotDue"
	case Gone:
		return "Gone"
	case Refused:
		return "Refused"
	default:
		return "Verdict(?)"
	}
}

// Claimed is the answer about one id.
type Claimed struct {
	ID      ID
	Verdict Verdict
	// At is the end of the live lease (Held, Granted) or the due time (NotDue).
	At time.Time
	// Err says why, where Verdict is Refused and the store knows; else nil. Core
	// reports it and tries the id again after a growing pause.
	Err error
	// Grant, Task, Attempt and Crashes are set where Verdict is Granted.
	Grant Grant
	Task  Task
	// NotBefore is the instant before which a grant must not start: the row's own
	// due time or back-off, as the newest Insert, Reschedule, Retry or Released left
	// it. DueBy may be later than now, so that it may be ahead. Core waits for the
	// later of NotBefore and Task.Due. Zero: Task.Due says it all.
	NotBefore time.Time
	// Attempt counts the grants of the task that were not released, this one
	// included. 0 in a grant: the store doesn't count. The scheduler then counts
	// the failures of the id in its process's memory, for the back-off and for
	// MaxAttempts, up to 10,000 ids and until the task is done, dead or gone.
	Attempt int
	// Crashes counts those of them whose lease ran out.
	Crashes int
}

// Grant proves a claim: the fence that Extend and Settle are checked against.
type Grant struct {
	ID ID
	// Token rises with every grant of the id, also after the id was finished and
	// used again.
	Token int64
	// Holder is the Lease.Holder that was granted.
	Holder string
}

// Outcome says how a grant ends.
type Outcome uint8

// The outcomes. The zero Outcome is none of them.
const (
	// Done: the task is finished.
	Done Outcome = iota + 1
	// Retry: the attempt failed; the task is pending again, due at
	// Settlement.Due, which becomes its Task.Due.
	Retry
	// DeadLetter: the task is given up and kept, as dead, for an operator to see.
	DeadLetter
	// Released: the task is given back, pending again at Settlement.Due; the
	// attempt is not counted and Task.Due stays.
	Released
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Done:
		return "Done"
	case Retry:
		return "Retry"
	case DeadLetter:
		return "DeadLetter"
	case Released:
		return "Released"
	default:
		return "Outcome(?)"
	}
}

// Settlement ends one grant.
type Settlement struct {
	Grant   Grant
	Outcome Outcome
	// Due is when the task is due next (Retry, Released), else zero.
	Due time.Time
	// Err is the text of the failure (Retry, DeadLetter), at most 4 KiB of valid UTF-8
	// without NUL; core cuts it.
	Err string
}

// Fate says what a cancelled id was.
type Fate uint8

// The fates. The zero Fate is none of them.
const (
	// Cancelled: it was pending, or its lease had ended, and never runs again.
	Cancelled Fate = iota + 1
	// WasRunning: somebody held it; it is cancelled, and the holder learns so at
	// its next heartbeat. Its effects may have happened or be happening.
	WasRunning
	// Finished: it was done or dead already and is left as it is.
	Finished
	// Unknown: there is no such task.
	Unknown
)

// String returns the fate's name.
func (f Fate) String() string {
	switch f {
	case Cancelled:
		return "Cancelled"
	case WasRunning:
		return "WasRunning"
	case Finished:
		return "Finished"
	case Unknown:
		return "Unknown"
	default:
		return "Fate(?)"
	}
}

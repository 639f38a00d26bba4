package core

import (
	"context"
	"time"
)

// TimeIndex says when to look: a set of ids, each at one due time. It is a
// hint: it may lose, double or delay entries, and the scheduler stays right,
// only later. One TimeIndex serves one queue; any number of processes may
// share the data behind it.
//
// Rules for implementations (MUST), each with a conformance case:
//
//   - All methods may be called concurrently.
//   - All times are UTC and whole milliseconds, from 1970 through 9999; core
//     sees to that, an implementation stores them exactly.
//   - Ids are bytes: two ids that differ in case or composition are two
//     entries. Slices belong to the caller again after the return and are not
//     written to, nor put into another order.
//   - A slice holds each id at most once (core sees to it) and may have any
//     length; an empty one is a no-op that returns nil. Large ones are split by
//     the implementation into steps that don't stall the backend.
//   - All writes are idempotent: a repeat of the same call after an error, or
//     by a client library, leaves the same state.
//   - An error means that any part of the call may have taken effect. An
//     implementation doesn't retry, log or read a clock. It returns soon after
//     ctx is done; with a ctx that is already done it returns its error and
//     does nothing.
type TimeIndex interface {
	// Add puts each entry into the index. Where the id is there already, the
	// EARLIER of the two due times stays.
	Add(ctx context.Context, entries []Entry) error
	// Due returns, without changing anything, up to limit (at least 1) entries with due time
	// at or before now, ordered by due time, then by the bytes of the id.
	Due(ctx context.Context, now time.Time, limit int) ([]Entry, error)
	// Move sets an entry's due time to To, earlier or later, only where it is
	// From at that instant. An entry that is missing or stands elsewhere is left
	// alone; that is no error.
	Move(ctx context.Context, moves []Move) error
	// Remove deletes an entry only where its due time is entry.Due at that
	// instant; a zero Due stands for any. An entry that is missing or stands
	// elsewhere is left alone; that is no error.
	Remove(ctx context.Context, entries []Entry) error
}

// Taker is an optional capability of a TimeIndex: Due and Move as one atomic
// step, so that schedulers that share an index don't all see the same head.
type Taker interface {
	// Take picks up to limit entries with due time at or before now, in the order
	// of Due, and moves each to until in the same atomic step. Two calls, from
	// any process, never take the same entry at the same due time. until is
	// after now. next is the earliest due time in the index that remains after
	// the step outside of what this call took, zero if there is none.
	//
	// When an error comes with some ids already taken, they are returned beside
	// it. A lost reply may leave ids at until, which costs time: until they come due
	// again, or a sweep finds their rows overdue. On a [Lister] core asks at once for
	// what stands at exactly until.
	Take(ctx context.Context, now, until time.Time, limit int) (taken []ID, next time.Time, err error)
}

// Restorer is an optional capability of a TimeIndex: to put back what it has lost
// without a change to what it has. Sweeps use it for rows that are overdue, or about
// to be due: somebody may have taken them since they were read, and Add, where the
// earlier due time stays, would bring them back. Of rows of an [Undated] store, only
// the index knows until when they are held or back off.
type Restorer interface {
	// AddMissing adds each entry whose id the index doesn't have, in one atomic
	// step with finding it missing. An entry that is there stays as it is, whether
	// its due time is earlier or later, also one that was taken and stands at
	// until; that is no error.
	AddMissing(ctx context.Context, entries []Entry) error
}

// Lister is an optional capability of a TimeIndex: to read entries wherever they
// stand. Core asks for those at exactly the until of a Take whose reply was lost, and
// now and then for those far ahead, to remove the ones whose tasks have ended: were
// cancelled, finished elsewhere, or are rows that the user's own statement ended.
type Lister interface {
	// List returns, without changing anything, up to limit (at least 1) entries that
	// stand strictly after `after` and are due before the bound, in the order of Due:
	// by due time, then by the bytes of the id. An `after` with a due time and no id
	// stands before all entries of that time; the zero Entry before all there are.
	// What stands there during the whole call is found; what is added, moved or removed
	// meanwhile may be found or not. No entries say that there are none; fewer than
	// limit don't say that there are no more.
	List(ctx context.Context, after Entry, before time.Time, limit int) ([]Entry, error)
}

// Watcher is an optional capability of a TimeIndex: a wake-up for sleeping
// schedulers. It is a hint too: polling is enough to be right.
type Watcher interface {
	// Watch calls notify when an Add or AddMissing, from any process, brought an
	// entry that is earlier than all others, also the first one, or made one so.
	// Notifications may be merged, doubled or, after a lost connection, missed. notify doesn't block. Watch blocks until ctx is
	// done (it then returns nil or ctx's error) or until it can't go on (it
	// returns another error; the scheduler calls it again after a back-off). It
	// has joined every goroutine of its own when it returns.
	Watch(ctx context.Context, notify func()) error
}

// Detector is an optional capability of a TimeIndex: to tell that it has lost
// entries, so that schedulers read the store again at once, not only when rows are
// found overdue or the next horizon sweep begins.
type Detector interface {
	// Generation names the data behind the index, such as one start of its server
	// and one life of its key. As long as the name stays the same, no more than
	// single entries are missing; with another one any number may be (a flush, an
	// eviction, a restart, a promotion, a switch to another server). All processes
	// read the waiting rows again then, which is harmless. An empty name: it can't
	// tell, or not now.
	//
	// An error beside a name says that the index works, but not as it should: its
	// entries stand in a backup, for example. Health shows it.
	Generation(ctx context.Context) (string, error)
}

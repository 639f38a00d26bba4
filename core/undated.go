package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Undated is an optional capability of a Claimer: its rows can't date every grant
// or retry, so that one that is being worked on, or backs off after a failure, may
// look due in the store. The time index alone then keeps workers apart and holds
// the back-off.
//
// Where Undated returns true, sweeps never claim. They put rows that are overdue
// and that the index doesn't have into it, at a little more than
// now + [Options].Lease: somebody may have them in hand. So the index has to be a
// [Restorer], and a [Taker], as no verdict of the store keeps two workers from a row
// that both saw due; New refuses another one. Rows due later are added at their due times as
// ever. The end of a grant moves an entry only where that stands as the grant left it:
// elsewhere it is a newer grant's. What that costs:
//
//   - A row that was overdue when the index lost it, or that nobody put there,
//     comes up a lease later. The near sweep finds it among the first 500 overdue
//     ones, the horizon sweep anywhere.
//   - What a process takes stands at a millisecond of the second that is its own, so that
//     after a crash its rows come up to a second later than a dated store's.
//   - With the index away nothing that is overdue runs until it is back. The rows
//     are safe meanwhile.
//   - A back-off longer than a lease is known to the index and to the process that
//     asked for it. Where the index loses it, a sweep of another process shortens it
//     to about a lease.
//   - A retry starts up to [Options].Ahead too early, unless the store is a [NoAhead].
//   - Where the index loses an entry whose row is in hand, or misses that its lease
//     was extended, another process may come upon it and start a second handler:
//     the store has to see to it that only one of them has an effect.
//
// Undated is asked once, when Run or Tick begins.
type Undated interface {
	Undated() bool
}

func isUndated(store Claimer) bool {
	u, ok := store.(Undated)
	return ok && u.Undated()
}

// checkUndated refuses an index that can't do what an undated store leaves to it.
func checkUndated(idx TimeIndex, store Claimer) error {
	_, takes := idx.(Taker)
	_, restores := idx.(Restorer)
	if takes && restores || !isUndated(store) {
		return nil
	}
	return fmt.Errorf("dueclaim: %w: of this claim store's rows only the index knows which are held or back off (it is Undated), and this index (%T) can't keep two workers from the same entry or put back what it has lost without bringing such a row nearer; want one that is a core.Taker and a core.Restorer, such as a redisindex or a heapindex", ErrInvalid, idx)
}

// sweepUndated is sweepNear for an undated store. It reads a page of what is
// overdue, unless the index is at work on a backlog, and a page of what is due
// soon, which overdue rows, all in hand perhaps, must not hide.
//
// What is overdue is restored again each time: one call with a page at most, which
// changes nothing where the index has the rows. To remember them instead would
// put off the repair of an index that is lost meanwhile.
func (e *engine) sweepUndated(ctx context.Context, inFlight time.Duration) error {
	now := e.clock.now()
	backlog := e.backlog()
	edge := CeilMilli(now.Add(e.opt.Ahead + inFlight))
	var rows []Entry
	if !backlog {
		overdue, err := e.waiting(ctx, Entry{}, edge, sweepPage)
		if err != nil {
			return err
		}
		rows = overdue
	}
	soon, err := e.waiting(ctx, Entry{Due: edge}, now.Add(2*e.opt.NearSweep+e.opt.Poll), sweepPage)
	if err != nil {
		return err
	}
	// A store whose rows all are due from the start of time may not know such a cursor.
	soon = slices.DeleteFunc(soon, func(row Entry) bool { return row.Due.Before(edge) })
	rows = e.notInHand(append(rows, soon...))
	e.obs.swept(len(rows), 0)
	e.addSwept(rows, inFlight, false)
	return nil
}

// addSwept puts rows that a sweep has read, ordered by due time, into the index. It
// uses up the slice. An overdue row that the index has at a later time was mostly taken
// since it was read, and is left there; with repair, one that waits for longer than a
// lease is not.
func (e *engine) addSwept(rows []Entry, inFlight time.Duration, repair bool) {
	// Asked again after the reading: what is about to come due may be taken by
	// others meanwhile, and must not be brought back from where they moved it.
	now := e.clock.now()
	n := len(dueBy(rows, now.Add(e.opt.Ahead+inFlight)))
	overdue := rows[:n:n]
	if !e.undated {
		late := 0
		if repair {
			late = len(dueBy(overdue, now.Add(-e.opt.Lease-takeOverGrace-e.margin())))
		}
		e.addToIndex(overdue[:late:late])
		e.restore(overdue[late:])
		e.addToIndex(rows[n:])
		return
	}
	// The margin is for clocks that disagree by what a reading's travel takes.
	at := CeilMilli(leaseEndInIndex(now.Add(e.opt.Lease + e.margin())))
	e.mu.Lock()
	for i := range overdue {
		overdue[i].Due = at
		if rest := e.rests[overdue[i].ID]; rest.After(at) {
			overdue[i].Due = rest
		}
	}
	e.mu.Unlock()
	e.restore(overdue) // also past the horizon: the row is no later one
	e.addToIndex(rows[n:])
}

// restore puts entries whose times are guesses into the index, which may know
// better. By Add an earlier guess wins over what it knows.
func (e *engine) restore(entries []Entry) {
	if r, ok := e.idx.(Restorer); ok {
		e.writeToIndex("add missing", entries, r.AddMissing)
		return
	}
	e.putInIndex(entries)
}

// rest remembers until when a row that looks overdue is to be left alone. The caller
// holds the lock.
func (e *engine) rest(id ID, until time.Time) {
	if !e.undated {
		return
	}
	now := e.clock.now()
	if !until.After(now) {
		delete(e.rests, id)
		return
	}
	if len(e.rests) >= 10_000 {
		maps.DeleteFunc(e.rests, func(_ ID, t time.Time) bool { return !t.After(now) })
	}
	if len(e.rests) >= 10_000 {
		clear(e.rests) // costs a retry that comes too soon
	}
	e.rests[id] = until
}

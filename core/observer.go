package core

import "time"

// Observer is told what happens, for metrics and traces. Each func may be nil.
// They are called from many goroutines at once and must be quick; they must not
// call back into the Scheduler's Run or Tick, which wait for them to return.
//
// A func that panics costs that call of it: what it was told of goes on, and the
// log has the stack, once a minute while it goes on. One that calls runtime.Goexit
// (as FailNow of a test does) ends a part of the Scheduler: don't.
//
// A func that blocks holds up what calls it; each says below what that is. Heartbeats
// wait for none of them.
type Observer struct {
	// Claimed: a batch of ids was put to the claim store. While three calls of it
	// block, nothing is claimed.
	Claimed func(ClaimStats)
	// Refused: the claim store refuses this id, which is set aside for a while;
	// err is its reason, nil where it gives none. It holds up claims as Claimed does.
	Refused func(id ID, err error)
	// Started: a handler is about to be called. Once for each attempt, also of a kind
	// that a Mux has no handler for: count tasks by Settled with the outcome Done. It
	// holds up that handler.
	Started func(job *Job, lateness time.Duration)
	// Returned: a handler has returned err after took. The result is recorded, and
	// the slot comes free, when Returned has returned.
	Returned func(job *Job, took time.Duration, err error)
	// Settled: the claim store has accepted the settlement (nil), or refused it
	// for good (ErrLeaseLost, ErrInvalid), or says that the step was not done
	// (ErrUnfinished): the settlement of that failure follows. Also what a handler has
	// settled itself, by its own word: as it says ([SettledAs]), or with the zero
	// Outcome where it only says that it did ([Settled]). While four calls of it block,
	// no results are recorded, and then no tasks claimed.
	Settled func(s Settlement, err error)
	// LeaseLost: a job's ctx was cancelled because its lease was lost or ran out.
	//
	// LeaseLost, Failed and Health are called one after the other and hold each other
	// up, and nothing else; while a thousand calls wait, more are left out.
	LeaseLost func(job *Job, cause error)
	// NotIndexed: the index could not be told of entries that are in the store;
	// a sweep will. It holds up the caller of the Producer, or the sweep or results
	// that the entries come from.
	NotIndexed func(entries int, err error)
	// Swept: a page of waiting rows was read; direct counts those that were
	// claimed without the index. It holds up sweeps.
	Swept func(rows, direct int)
	// IndexLost: the index says that it may have lost any number of entries, as its
	// generation (see Detector) was one name and now is another. All waiting rows are
	// read again. It holds up sweeps.
	IndexLost func(was, now string)
	// Failed: a call to the index or the claim store failed or has an unknown
	// outcome; op is its name, such as "index: take". That of a Producer holds up the
	// Producer's caller.
	Failed func(op string, err error)
	// Health: the state of the index, the claim store or the sweeps has changed.
	Health func(Health)
}

// ClaimStats says how one batch of claims went; the counts add up to the ids
// that were asked for, or are all zero where Err is set.
type ClaimStats struct {
	Granted, Held, NotDue, Gone, Refused int
	Took                                 time.Duration
	Err                                  error
}

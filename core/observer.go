package core

import "time"

// Observer is told what happens, for metrics and traces. Each func may be nil.
// They are called from many goroutines at once and must be quick; they must not
// call back into the Scheduler's Run or Tick.
type Observer struct {
	// Claimed: a batch of ids was put to the claim store.
	Claimed func(ClaimStats)
	// Refused: the claim store refuses this id, which is set aside for a while;
	// err is its reason, nil where it gives none.
	Refused func(id ID, err error)
	// Started: a handler is about to be called. Once for each attempt, also of a kind
	// that a Mux has no handler for: count tasks by Settled with the outcome Done.
	Started func(job *Job, lateness time.Duration)
	// Returned: a handler has returned err after took.
	Returned func(job *Job, took time.Duration, err error)
	// Settled: the claim store has accepted the settlement (nil), or refused it
	// for good (ErrLeaseLost, ErrInvalid), or says that the step was not done
	// (ErrUnfinished): the settlement of that failure follows.
	Settled func(s Settlement, err error)
	// LeaseLost: a job's ctx was cancelled because its lease was lost or ran out.
	LeaseLost func(job *Job, cause error)
	// NotIndexed: the index could not be told of entries that are in the store;
	// a sweep will.
	NotIndexed func(entries int, err error)
	// Swept: a page of waiting rows was read; direct counts those that were
	// claimed without the index.
	Swept func(rows, direct int)
	// IndexLost: the index says that it may have lost any number of entries, as its
	// generation (see Detector) was one name and now is another. All waiting rows are
	// read again.
	IndexLost func(was, now string)
	// Failed: a call to the index or the claim store failed or has an unknown
	// outcome; op is its name, such as "index: take".
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

func (o *Observer) claimed(s ClaimStats) {
	if o.Claimed != nil {
		o.Claimed(s)
	}
}

func (o *Observer) refused(id ID, err error) {
	if o.Refused != nil {
		o.Refused(id, err)
	}
}

func (o *Observer) started(j *Job, lateness time.Duration) {
	if o.Started != nil {
		o.Started(j, lateness)
	}
}

func (o *Observer) settled(s Settlement, err error) {
	if o.Settled != nil {
		o.Settled(s, err)
	}
}

func (o *Observer) leaseLost(j *Job, cause error) {
	if o.LeaseLost != nil {
		o.LeaseLost(j, cause)
	}
}

func (o *Observer) notIndexed(n int, err error) {
	if o.NotIndexed != nil {
		o.NotIndexed(n, err)
	}
}

func (o *Observer) swept(rows, direct int) {
	if o.Swept != nil {
		o.Swept(rows, direct)
	}
}

func (o *Observer) indexLost(was, now string) {
	if o.IndexLost != nil {
		o.IndexLost(was, now)
	}
}

func (o *Observer) failed(op string, err error) {
	if o.Failed != nil {
		o.Failed(op, err)
	}
}

func (o *Observer) health(h Health) {
	if o.Health != nil {
		o.Health(h)
	}
}

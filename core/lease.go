package core

import (
	"context"
	"errors"
	"time"
)

// keepLeases extends the leases of what is in hand, all in one batch, and reads
// the store's clock, each third of a lease, until ctx is done.
func (e *engine) keepLeases(ctx context.Context) {
	down := backoff{least: e.heartbeat() / 10, most: e.heartbeat() / 2}
	wait := e.heartbeat()
	stepped := false // and not all leases were extended since
	defer e.lane.open()
	for {
		await(ctx, e.doubt, wait)
		if ctx.Err() != nil {
			return
		}
		began := e.clock.mono()
		went := make(chan struct{})
		slow := time.AfterFunc(e.heartbeat()/10, func() { // it may wait for a connection
			e.lane.close()
			close(went)
		})
		stepped = e.readClock() || stepped
		if e.extendAll(stepped) {
			stepped = false
			down.ok()
			// From start to start: one that took long must not put off the next.
			wait = max(e.heartbeat()/10, e.heartbeat()-(e.clock.mono()-began))
		} else {
			wait = down.failed()
		}
		if !slow.Stop() {
			<-went // else the lane might be closed after it was opened here
		}
		if !e.starved {
			e.lane.open()
		}
	}
}

// readClock reads the store's clock; true after a step that makes leases
// doubtful. A clock that can't be read goes on as it is.
func (e *engine) readClock() bool {
	var step time.Duration
	err := e.beat.once(e.base, func(ctx context.Context) (err error) {
		// Others read the clock up to a heartbeat later, then extend.
		step, err = e.clock.sync(ctx, e.margin(), e.opt.Lease/2)
		return err
	})
	e.noteClock(err)
	if step.Abs() <= e.margin() {
		return false
	}
	e.notices.add(func() { e.log.Warn("dueclaim: the store's clock has jumped", "by", step) })
	return true
}

// noteClock records what a reading of the store's clock gave.
func (e *engine) noteClock(err error) {
	if _, ok := e.store.(TimeSource); !ok {
		return
	}
	e.health.store("read the clock", err)
	if err == nil {
		e.health.clock(time.Until(e.clock.now()))
	}
}

// probe asks whether the store takes writes, where no heartbeat has shown it: an idle
// worker's reads may be answered by a server that became read-only.
func (e *engine) probe() {
	if p, ok := e.store.(Prober); ok {
		e.health.store("probe", e.beat.once(e.base, p.Probe))
	}
}

// extendAll extends every lease that has used up three tenths (so that one which
// was extended by the last heartbeat is sure to be by this one, whatever the
// rounding), or each one when all is set. It returns false when some have to be tried again soon.
func (e *engine) extendAll(all bool) bool {
	sent := e.clock.mono()
	now, gone := e.clock.lease()
	until := CeilMilli(now.Add(e.opt.Lease))
	young := until.Add(-e.heartbeat() * 9 / 10) // leases that end after this are young
	if all {
		young = until.Add(time.Hour * 24 * 365 * 100)
	}
	jobs := e.leased(young)
	e.starved = false
	if len(jobs) == 0 {
		e.probe()
		return true
	}
	grants := make([]Grant, len(jobs))
	for i, j := range jobs {
		grants[i] = j.Grant
	}
	err := e.beat.once(e.base, func(ctx context.Context) error { return e.store.Extend(ctx, grants, until) })
	e.health.store("extend", err)
	e.starved = errors.Is(err, ErrNoConnection)
	items := itemErrors(err)
	if err != nil && items == nil {
		return false
	}
	e.health.store("probe", nil) // leases were written
	good := true
	var lost []*Job
	moves := make([]Move, 0, len(jobs))
	deadline := int64(e.deadline(sent, gone))
	e.mu.Lock()
	for i, j := range jobs {
		switch itemErr := items[i]; {
		case itemErr == nil:
			j.deadline.Store(max(j.deadline.Load(), deadline))
			j.leaseUntil = until
			to := leaseEndInIndex(until)
			moves = append(moves, Move{ID: j.Grant.ID, From: j.standing, To: to})
			j.standing = to
		case errors.Is(itemErr, ErrLeaseLost):
			if j.state != settling { // else its settlement has arrived before, or is refused
				lost = append(lost, j)
			}
		default:
			good = false
		}
	}
	e.mu.Unlock()
	for _, j := range lost {
		e.loseLease(j, ErrLeaseLost)
	}
	e.moveInIndex(moves)
	return good
}

// deadline is when a handler is cancelled whose lease was asked for at sent, with so
// much of it gone by then at most. Half of the grace that others leave makes up for
// that; the other half is the handler's, to return.
func (e *engine) deadline(sent, gone time.Duration) time.Duration {
	return sent + e.opt.Lease - e.margin() - max(0, gone-takeOverGrace/2)
}

// leased returns the jobs whose leases end before young and are to be kept. A job
// that could not be settled for a whole lease is given up to others: its
// settlement is still tried, and counts if it comes first.
func (e *engine) leased(young time.Time) []*Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	var jobs []*Job
	for id, j := range e.hand {
		switch {
		case j.state == claiming || j.lost:
		case j.state == settling && e.clock.mono()-j.settling > e.opt.Lease:
			j.state = abandoned
			delete(e.hand, id)
			e.abandoned[id] = j
		case j.leaseUntil.Before(young):
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// loseLease cancels a job's handler, once. It must not be called under the lock.
func (e *engine) loseLease(j *Job, cause error) {
	e.mu.Lock()
	first := !j.lost
	j.lost = true
	e.mu.Unlock()
	if !first {
		return
	}
	j.cancel(cause)
	e.notices.add(func() {
		e.log.Warn("dueclaim: lease lost; its handler is cancelled", "id", string(j.Grant.ID), "token", j.Grant.Token, "cause", cause)
		e.obs.leaseLost(j, cause)
	})
}

// watchDeadlines cancels handlers whose leases were not extended in time. It goes
// by the process's monotonic clock alone, so that it works while the store hangs
// and after a pause of the process.
func (e *engine) watchDeadlines(ctx context.Context) {
	for {
		next := e.expire()
		await(ctx, e.sooner, next)
		if ctx.Err() != nil {
			return
		}
	}
}

// expire cancels what is over its deadline and returns how long it is until the
// next look: until the earliest deadline, which only ever moves on. A new job's is
// nine tenths of a lease away, or nearer after a claim that took long: then the
// job's claim wakes the watch.
func (e *engine) expire() time.Duration {
	now := e.clock.mono()
	next := now + e.opt.Lease - e.margin()
	var over []*Job
	e.mu.Lock()
	for _, j := range e.hand {
		if j.state != waiting && j.state != running || j.lost {
			continue
		}
		if d := time.Duration(j.deadline.Load()); d <= now {
			over = append(over, j)
		} else {
			next = min(next, d)
		}
	}
	e.lookAt = next
	e.mu.Unlock()
	for _, j := range over {
		e.loseLease(j, errLeaseExpired)
	}
	return max(next-now, time.Millisecond)
}

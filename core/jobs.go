package core

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

var (
	errShortAnswer = errors.New("the claim store did not answer about each id, in the order of the ids")
	// errLeaseExpired is the cause of a handler's cancelled context when its lease
	// could not be extended in time.
	errLeaseExpired = fmt.Errorf("%w: it could not be extended in time", ErrLeaseLost)
)

// work is a granted task's goroutine: wait for the due time, run, settle.
func (e *engine) work(j *Job) {
	began, ok := e.begin(j)
	if !ok {
		j.cancel(nil)
		e.settle(j, Settlement{Outcome: Released, Due: CeilMilli(e.soonestDue(j))}, 1)
		return
	}
	if j.Crashes >= e.opt.MaxCrashes {
		j.cancel(nil)
		e.settle(j, Settlement{Outcome: DeadLetter, Err: fmt.Sprintf(
			"given up: its lease ran out %d times (limit %d); either it kills its worker, or its handler returns core.Settled without a committed SettleTx", j.Crashes, e.opt.MaxCrashes)}, 1)
		return
	}
	e.started.Add(1)
	e.obs.started(j, j.lateness)
	e.handle(j, began)
}

// handled ends a job by what its handler returned.
func (e *engine) handled(j *Job, began time.Duration, err error) {
	if e.obs.Returned != nil {
		e.obs.Returned(j, e.clock.mono()-began, err)
	}
	var cause error
	if err != nil {
		cause = context.Cause(j.ctx)
	}
	j.cancel(nil)
	if errors.Is(err, Settled) {
		e.free(1)
		e.settledByHandler(j)
		return
	}
	j.saidLost = errors.Is(err, ErrLeaseLost)
	e.settle(j, e.outcome(j, err, cause), 1)
}

// soonestDue is when a task that is given back is due again: when it would have started.
func (e *engine) soonestDue(j *Job) time.Time {
	if now := e.clock.now(); j.notBefore.Before(now) {
		return now
	}
	return j.notBefore
}

// waitDue waits until the store's clock shows when the job may start; false when the task
// is to be given back, also because the clock was set back and the due time is
// far off again: it would hold a slot all the while.
func (e *engine) waitDue(j *Job) bool {
	for {
		d := e.clock.until(j.notBefore) // asked again after each wait: the clock may have been read meanwhile
		if d <= 0 {
			return true
		}
		if d > e.opt.Ahead+e.margin() {
			return false
		}
		if !e.alarm.wait(j.ctx, e.stop, j.notBefore, d) {
			return false
		}
	}
}

// begin waits for the due time and marks a job as running, unless the scheduler
// stops or the lease is over or nearly so, as after a long pause of the process. now
// is the monotonic time.
func (e *engine) begin(j *Job) (now time.Duration, ok bool) {
	if !e.waitDue(j) {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now = e.clock.mono()
	if e.stopping || j.lost || now >= time.Duration(j.deadline.Load()) {
		return now, false
	}
	j.lateness = max(0, e.clock.at(now).Sub(j.Task.Due))
	j.state = running
	return now, true
}

// handle calls the handler and ends the job. A panic becomes an error, also one
// of the returned error's own method (a nil pointer as an error); so does a
// runtime.Goexit. Nothing stops a Goexit: what is to be done after the handler is
// done while the goroutine unwinds.
func (e *engine) handle(j *Job, began time.Duration) {
	var err error
	returned := false
	defer func() {
		if !returned {
			value := "runtime.Goexit called"
			if r := recover(); r != nil {
				value = fmt.Sprint(r)
			}
			err = &panicError{value: value, stack: debug.Stack()}
		}
		e.handled(j, began, err)
	}()
	err = e.handler.Handle(j.ctx, j)
	if err != nil { // a panic of the error's own methods is caught here
		_, _ = err.Error(), errors.Is(err, Settled)
	}
	returned = true
}

// outcome turns what a handler returned into a settlement. cause is why its
// context was cancelled, if it was.
func (e *engine) outcome(j *Job, err, cause error) Settlement {
	if err == nil {
		return Settlement{Outcome: Done}
	}
	now := e.clock.now()
	var at *retryAtError
	var dead *deadError
	switch {
	case errors.Is(err, ErrUnknownKind):
		return Settlement{Outcome: Released, Due: e.strange(j.Task.Kind, now, err)}
	case errors.Is(cause, ErrDraining) && (errors.Is(err, ErrDraining) || errors.Is(err, context.Canceled)):
		return Settlement{Outcome: Released, Due: CeilMilli(now)}
	case errors.Is(cause, errLeaseExpired) && errors.Is(err, context.Canceled):
		// The database was away, not the task at fault.
		return Settlement{Outcome: Released, Due: CeilMilli(now.Add(time.Second))}
	case errors.As(err, &dead):
		return Settlement{Outcome: DeadLetter, Err: StorableText(err.Error())}
	}
	failures := j.Failures() + 1
	most := j.Task.MaxAttempts
	if most == 0 {
		most = e.opt.MaxAttempts
	}
	if failures >= most {
		return Settlement{Outcome: DeadLetter, Err: StorableText(err.Error())}
	}
	due := now.Add(max(0, e.opt.Backoff(failures)))
	if errors.As(err, &at) {
		due = at.at
		if due.Before(now) {
			due = now
		}
	}
	if last := endDue.Add(-time.Millisecond); due.After(last) {
		due = last
	}
	return Settlement{Outcome: Retry, Due: CeilMilli(due), Err: StorableText(err.Error())}
}

// strange returns when a task of an unknown kind is due again, so that it is left
// to processes that know the kind. All that are found until then come back at the
// same instant: however many there are, they are claimed and given back in large
// batches, once in a back-off, instead of a few at a time all the while.
func (e *engine) strange(kind string, now time.Time, err error) time.Time {
	const least, most = 250 * time.Millisecond, 5 * time.Second
	e.mu.Lock()
	s := e.strangers[kind]
	first := s == nil
	if first {
		if len(e.strangers) >= 1000 {
			clear(e.strangers)
		}
		s = &stranger{backoff: backoff{least: least, most: most}}
		e.strangers[kind] = s
	}
	// Too near, and they would be back before the others; too far, and the clock was set back.
	if left := s.until.Sub(now); left < least/2 || left > most {
		s.until = CeilMilli(now.Add(s.backoff.failed()))
	}
	until := s.until
	e.mu.Unlock()
	if first {
		e.log.Warn("dueclaim: task of a kind without a handler here; giving such tasks back", "kind", kind, "err", err)
	}
	return until
}

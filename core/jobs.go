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

// handled ends a job by its handler's answer.
func (e *engine) handled(j *Job, began time.Duration, r returned) {
	e.obs.returned(j, e.clock.mono()-began, r.err)
	j.cancel(nil)
	if r.end.way == wayBySelf {
		e.free(1)
		e.settledByHandler(j, r.end.said)
		return
	}
	j.saidLost = r.lost
	e.settle(j, e.settlementOf(j, r.end, r.text), 1)
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

// returned is a handler's answer, read once: its methods are the user's and may panic.
type returned struct {
	err  error
	text string
	end  ending
	lost bool // it has ErrLeaseLost
}

func read(err, cause error) returned {
	if err == nil {
		return returned{end: ending{way: wayDone}}
	}
	return returned{err: err, text: err.Error(), end: endingOf(err, cause), lost: errors.Is(err, ErrLeaseLost)}
}

// handle calls the handler and ends the job. A panic becomes an error, also one
// of the returned error's own method (a nil pointer as an error); so does a
// runtime.Goexit. Nothing stops a Goexit: what is to be done after the handler is
// done while the goroutine unwinds.
func (e *engine) handle(j *Job, began time.Duration) {
	var r returned
	came := false
	defer func() {
		if !came {
			value := "runtime.Goexit called"
			if v := recover(); v != nil {
				value = fmt.Sprint(v)
			}
			r = read(&panicError{value: value, stack: debug.Stack()}, nil)
		}
		e.handled(j, began, r)
	}()
	err := e.handler.Handle(j.ctx, j)
	r = read(err, context.Cause(j.ctx))
	came = true
}

// strange returns when a task of an unknown kind is due again, so that it is left
// to processes that know the kind. All that are found until then come back at the
// same instant: however many there are, they are claimed and given back in large
// batches, once in a back-off, instead of a few at a time all the while.
func (e *engine) strange(kind string, now time.Time, why string) time.Time {
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
		e.log.Warn("dueclaim: task of a kind without a handler here; giving such tasks back", "kind", kind, "err", why)
	}
	return until
}

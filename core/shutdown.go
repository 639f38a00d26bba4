package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// cancelGrace is how long handlers have to return after they were cancelled.
	cancelGrace = 5 * time.Second
	// settleGrace is how long a shutdown tries to record results.
	settleGrace = 10 * time.Second
)

// unsettledError says that results were not recorded.
type unsettledError struct {
	n   int
	err error
}

func (e *unsettledError) Error() string {
	text := fmt.Sprintf("%d results could not be recorded; those tasks run again when their leases are over", e.n)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}
func (e *unsettledError) Unwrap() error { return e.err }

// run is Scheduler.Run's body: everything that it starts, it joins.
func (e *engine) run(ctx context.Context) error {
	if !e.firstReading(ctx) {
		return nil
	}
	defer e.alarm.close()
	alive, die := context.WithCancel(e.base) // outlives ctx: heartbeats and results
	defer die()
	results, allReturned := context.WithCancel(e.base)
	defer allReturned()
	hard, giveUp := context.WithCancel(e.base)
	defer giveUp()

	// Until the first take has said what the index has, it is asked before the sweep:
	// schedulers that start together would all claim the same overdue rows.
	e.offered = true

	var front, back sync.WaitGroup
	for _, part := range []func(context.Context){e.dispatch, e.watch, e.nearSweep, e.horizonSweep, e.purge, e.checkSetup} {
		front.Go(func() { part(ctx) })
	}
	for _, part := range []func(context.Context){e.keepLeases, e.watchDeadlines} {
		back.Go(func() { part(alive) })
	}
	var settlers sync.WaitGroup
	for range maxSettles {
		settlers.Go(func() { e.settleLoop(results, hard) })
	}

	<-ctx.Done()
	e.log.Info("dueclaim: shutting down", "in_hand", e.inHand(), "drain", e.opt.Drain)
	e.mu.Lock()
	e.stopping = true
	e.mu.Unlock()
	close(e.stop)
	left := e.drain(&front)

	allReturned()
	timer := time.AfterFunc(settleGrace, giveUp)
	settlers.Wait()
	timer.Stop()
	die()
	back.Wait()
	return e.verdict(left)
}

// firstReading reads the store's clock, as often as it takes; false when ctx was
// done before.
func (e *engine) firstReading(ctx context.Context) bool {
	down := backoff{least: 50 * time.Millisecond, most: 5 * time.Second}
	for {
		err := e.call.once(ctx, func(ctx context.Context) error {
			_, err := e.clock.sync(ctx, 0, 0)
			return err
		})
		if ctx.Err() != nil {
			return false
		}
		e.noteClock(err)
		if err == nil {
			return true
		}
		await(ctx, nil, down.failed())
	}
}

// drain waits for claims in flight and for handlers, cancels the latter when
// Drain is over, and returns the ids whose handlers go on all the same.
func (e *engine) drain(front *sync.WaitGroup) []ID {
	began := e.clock.mono()
	timer := time.AfterFunc(e.opt.Drain, e.cancelHandlers)
	defer timer.Stop()
	front.Wait()     // no more claims begin; bounded by a call's time-out
	e.claimWG.Wait() // no more handlers begin; bounded by that of triesAfterStop
	returned := make(chan struct{})
	go func() { // ends with the last handler
		e.jobs.Wait()
		close(returned)
	}()
	await(e.base, returned, max(0, e.opt.Drain-(e.clock.mono()-began))+cancelGrace)
	select {
	case <-returned:
		return nil
	default:
		return e.stillRunning()
	}
}

// abort makes a Tick give back what isn't started and cancels its handlers.
func (e *engine) abort() {
	e.mu.Lock()
	e.stopping = true
	e.mu.Unlock()
	close(e.stop)
	e.cancelHandlers()
}

// cancelHandlers cancels every handler with the cause ErrDraining.
func (e *engine) cancelHandlers() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range e.hand {
		if j.cancel != nil {
			j.cancel(ErrDraining)
		}
	}
}

func (e *engine) stillRunning() []ID {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ids []ID
	for id, j := range e.hand {
		if j.state == running {
			ids = append(ids, id)
		}
	}
	return ids
}

func (e *engine) inHand() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.hand)
}

// verdict is Run's error.
func (e *engine) verdict(left []ID) error {
	var errs []error
	if len(left) > 0 {
		errs = append(errs, &StillRunningError{Tasks: left})
	}
	errs = append(errs, e.settles.unsettled())
	return wrapOp("run", errors.Join(errs...))
}

// tick is Scheduler.Tick's body: one round of the same parts.
func (e *engine) tick(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	defer e.alarm.close()
	alive, die := context.WithCancel(e.base)
	var back sync.WaitGroup
	for _, part := range []func(context.Context){e.keepLeases, e.watchDeadlines} {
		back.Go(func() { part(alive) })
	}
	defer back.Wait()
	defer die()
	unhook := context.AfterFunc(ctx, e.abort)
	defer unhook()

	_, sweepErr := e.sweepNear(ctx, 0)
	if ctx.Err() == nil {
		e.health.sweep("near", sweepErr)
	}
	var takeErr, claimErr error
	left := e.opt.Slots
	for range 2 { // what the sweep left, and what the index has
		if left == 0 {
			break
		}
		n, _ := e.slotsForClaim()
		if n == 0 {
			break
		}
		e.free(max(0, n-left)) // slots that came free count as used up: they have had their task
		n = min(n, left)
		b, _, err := e.nextBatch(n)
		left -= len(b.ids)
		takeErr = errors.Join(takeErr, err)
		claimErr = errors.Join(claimErr, e.claim(b))
		if !b.direct() {
			break
		}
	}
	e.jobs.Wait()
	settleErr := e.flush()
	return int(e.started.Load()), errors.Join(sweepErr, takeErr, claimErr, settleErr)
}

package core

import (
	"context"
	"time"
)

// dispatch takes due ids from the index and claims them, until ctx is done.
func (e *engine) dispatch(ctx context.Context) {
	down := backoff{least: 50 * time.Millisecond, most: e.opt.Poll}
	for ctx.Err() == nil {
		n, hold := e.slotsForClaim()
		if n == 0 {
			await(ctx, e.room, hold)
			continue
		}
		b, next, err := e.nextBatch(n)
		e.claimWG.Go(func() { _ = e.claim(b) })
		switch {
		case err != nil:
			await(ctx, e.head, down.failed()) // the sweep may have found something
			continue
		case len(b.ids) == n, b.direct(), len(e.found.ids) > 0:
			continue // there may be more
		}
		down.ok()
		hold = e.opt.Poll
		if !next.IsZero() {
			// Where tasks come thick, look a few times within Ahead rather than once
			// for each of them: a claim of many costs hardly more than a claim of one.
			hold = min(hold, max(e.clock.until(next.Add(-e.opt.Ahead)), e.opt.Ahead/2))
		}
		await(ctx, e.head, hold)
	}
}

// nextBatch returns up to n ids to be claimed, for which n slots are reserved:
// what the sweep left, else what failed takes had taken, else what the index has.
func (e *engine) nextBatch(n int) (b takenBatch, next time.Time, err error) {
	e.dropFound()
	if ids := e.takeOverdue(n); len(ids) > 0 {
		b = e.newBatch()
		b.ids = ids
	} else if len(e.found.ids) > 0 {
		b = e.takeFound(n)
		next = e.clock.now() // the index may have more by now
	} else {
		b, next, err = e.take(n)
		e.noteTake(len(b.ids) == n, err, next)
		if err != nil {
			e.noteLost(b, n)
		} else {
			e.findLost()
		}
	}
	e.free(n - len(b.ids))
	return b, next, err
}

// slotsForClaim reserves slots for a claim and counts it as in flight, or
// returns 0 and how long to wait for better times. While another claim is in
// flight it waits for a batch that is worth a round trip.
func (e *engine) slotsForClaim() (n int, hold time.Duration) {
	backlog := e.settles.backlog()
	e.mu.Lock()
	defer e.mu.Unlock()
	if pause := e.pause - e.clock.mono(); pause > 0 {
		return 0, pause
	}
	room := min(e.opt.Slots-e.used, e.limit)
	few := room < min(maxBatch, e.opt.Slots)/4
	switch {
	case room <= 0, e.claims >= maxClaims, e.claims > 0 && few:
		return 0, e.opt.Poll
	case backlog > e.opt.Slots+maxBatch:
		return 0, 10 * time.Millisecond // results first
	}
	e.used += room
	e.claims++
	return room, 0
}

func (e *engine) claimEnded() {
	e.mu.Lock()
	e.claims--
	e.mu.Unlock()
	poke(e.room)
}

// noteTake records what the last take said about the index.
func (e *engine) noteTake(full bool, err error, next time.Time) {
	defer poke(e.taken)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && !e.idxFailed {
		poke(e.fails) // the store knows what is due, and need not wait for the next sweep
	}
	e.offered, e.idxFailed = full && err == nil, err != nil
	e.wakeAt = e.clock.now().Add(e.opt.Poll)
	if !next.IsZero() && next.Before(e.wakeAt) {
		e.wakeAt = next
	}
}

// takenBatch is a set of ids to be claimed under one lease.
type takenBatch struct {
	ids      []ID
	jobs     []*Job // of the ids, once they are held
	lease    Lease
	standing time.Time     // where the index has them now; zero: they didn't come from it
	deadline time.Duration // monotonic: when its handlers are cancelled
}

// direct tells whether the batch comes from the sweep.
func (b takenBatch) direct() bool { return b.standing.IsZero() }

// newBatch returns an empty batch with a lease that starts now.
func (e *engine) newBatch() takenBatch {
	sent := e.clock.mono()
	now, gone := e.clock.lease()
	b := takenBatch{deadline: e.deadline(sent, gone)}
	b.lease = Lease{
		Now:   FloorMilli(e.clock.takeOver().Add(-takeOverGrace)),
		DueBy: FloorMilli(now.Add(e.opt.Ahead)),
		Until: CeilMilli(now.Add(e.opt.Lease)),
	}
	return b
}

// take picks up to n due ids from the index and moves them to the end of the
// lease that is about to be asked for, so that a crash at any later point leaves
// them where others find them.
func (e *engine) take(n int) (b takenBatch, next time.Time, err error) {
	b = e.newBatch()
	b.standing = leaseEndInIndex(b.lease.Until)
	if e.undated {
		b.standing = e.ownMilli(b.standing)
	}
	err = e.index.once(e.base, func(ctx context.Context) (err error) {
		if taker, ok := e.idx.(Taker); ok {
			b.ids, next, err = taker.Take(ctx, b.lease.DueBy, b.standing, n)
			return err
		}
		b.ids, next, err = e.takeInSteps(ctx, b.lease.DueBy, b.standing, n)
		return err
	})
	if err == nil && e.indexFailed() {
		// An index that answers again first says what it has to, before its health is
		// told: a Failover answers from its backup at once, and is not well.
		e.generation(e.base)
	}
	e.health.index("take", err)
	if err == nil {
		e.retryUnwritten()
	}
	return b, next, err
}

// indexFailed tells whether the last take failed.
func (e *engine) indexFailed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.idxFailed
}

// takeInSteps is Take for an index that isn't a Taker: schedulers that look at
// the same time see the same head, and the claim store decides among them.
func (e *engine) takeInSteps(ctx context.Context, now, until time.Time, n int) ([]ID, time.Time, error) {
	due, err := e.idx.Due(ctx, now, n)
	if err != nil {
		return nil, time.Time{}, err
	}
	ids, moves := make([]ID, len(due)), make([]Move, len(due))
	for i, entry := range due {
		ids[i], moves[i] = entry.ID, Move{ID: entry.ID, From: entry.Due, To: until}
	}
	if len(moves) > 0 {
		if err := e.idx.Move(ctx, moves); err != nil {
			return ids, time.Time{}, err
		}
	}
	if len(due) == n {
		return ids, time.Time{}, nil // the caller looks again at once
	}
	head, err := e.idx.Due(ctx, endDue.Add(-time.Millisecond), 1)
	if err != nil || len(head) == 0 {
		return ids, time.Time{}, err
	}
	return ids, head[0].Due, nil
}

// await waits for d, a poke of c, or ctx. It tells whether it was the poke.
func await(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c:
		return true
	case <-ctx.Done():
	}
	return false
}

// watch passes the index's wake-ups on, until ctx is done.
func (e *engine) watch(ctx context.Context) {
	w, ok := e.idx.(Watcher)
	if !ok {
		return
	}
	down := backoff{least: 100 * time.Millisecond, most: 5 * time.Second}
	for ctx.Err() == nil {
		began := e.clock.mono()
		err := w.Watch(ctx, func() { poke(e.head) })
		if ctx.Err() != nil {
			return
		}
		e.tellFailed("index: watch", err)
		if down.fails == 0 {
			e.log.Warn("dueclaim: index can't wake this scheduler; polling goes on, and the watch is tried again", "err", err)
		}
		if e.clock.mono()-began > time.Minute {
			down.ok()
		}
		await(ctx, nil, down.failed())
	}
}

package core

import (
	"context"
	"errors"
	"sync"
	"time"
)

// settleLinger is how long a settle batch waits for company when there is little
// to do: at a thousand tasks a second it cuts the statements to a few dozen.
const settleLinger = 2 * time.Millisecond

// settleBusyPause is how long to leave a locked row alone.
const settleBusyPause = 20 * time.Millisecond

// settlement is a job's end on its way to the claim store.
type settlement struct {
	job *Job
	s   Settlement
}

// settleQueue gathers settlements while a batch is in flight.
type settleQueue struct {
	mu       sync.Mutex
	list     []settlement
	inFlight int
	limit    int // size of a batch; falls while batches fail, to isolate one that can't be settled
	down     backoff
	more     chan struct{} // poked when one is added
}

func (q *settleQueue) init() {
	q.limit = maxBatch
	q.down = backoff{least: 20 * time.Millisecond, most: 5 * time.Second}
	q.more = make(chan struct{}, 1)
}

// len counts what is not accepted or refused yet.
func (q *settleQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) + q.inFlight
}

func (q *settleQueue) push(items ...settlement) {
	q.mu.Lock()
	q.list = append(q.list, items...)
	q.mu.Unlock()
	poke(q.more)
}

// pop takes the next batch, in flight from now on.
func (q *settleQueue) pop() []settlement {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.list), q.limit)
	batch := q.list[:n:n]
	q.list = q.list[n:]
	q.inFlight += n
	return batch
}

// landed ends a batch: again are those that have to be tried again, failed tells
// whether that is because the store failed (else their rows were locked). It
// returns how long to pause before the next.
func (q *settleQueue) landed(n int, again []settlement, failed bool) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight -= n
	q.list = append(q.list, again...)
	if failed {
		q.limit = max(1, q.limit/2)
		return q.down.failed()
	}
	q.down.ok()
	q.limit = min(maxBatch, q.limit*2)
	if len(again) > 0 {
		return jitter(settleBusyPause)
	}
	return 0
}

// settle hands a job's end to the settlers.
func (e *engine) settle(j *Job, s Settlement) {
	s.Grant = j.Grant
	e.mu.Lock()
	j.state, j.settling = settling, time.Now()
	e.mu.Unlock()
	e.settles.push(settlement{job: j, s: s})
}

// settledByHandler tidies up after a handler that settled its task itself.
func (e *engine) settledByHandler(j *Job) {
	e.obs.settled(j.Done(), nil)
	e.tidy([]settlement{{job: j, s: j.Done()}})
}

// settleLoop sends batches until ctx is done and nothing is left, or hard is
// done. Several of them share the queue.
func (e *engine) settleLoop(ctx, hard context.Context) {
	for {
		if e.settles.len() == 0 && ctx.Err() != nil {
			poke(e.settles.more) // for the next settler
			return
		}
		if hard.Err() != nil {
			return
		}
		e.linger(ctx)
		batch := e.settles.pop()
		if len(batch) == 0 {
			select {
			case <-e.settles.more:
			case <-ctx.Done():
				await(hard, nil, time.Millisecond) // another settler's batch is in flight
			}
			continue
		}
		poke(e.settles.more) // another settler may take what is left
		await(hard, nil, e.sendSettlements(batch))
	}
}

// linger waits a moment for company when little is queued.
func (e *engine) linger(ctx context.Context) {
	e.settles.mu.Lock()
	n := len(e.settles.list)
	e.settles.mu.Unlock()
	if n > 0 && n < 50 {
		await(ctx, nil, settleLinger)
	}
}

// sendSettlements settles a batch and returns how long to pause: longer after
// each failure in a row. What has an unknown outcome goes back into the queue.
func (e *engine) sendSettlements(batch []settlement) time.Duration {
	list := make([]Settlement, len(batch))
	for i, item := range batch {
		list[i] = item.s
	}
	now := FloorMilli(e.clock.now())
	err := e.call.once(e.base, func(ctx context.Context) error { return e.store.Settle(ctx, now, list) })
	e.health.store("settle", err)
	items := itemErrors(err)
	var ended, again []settlement
	for i, item := range batch {
		itemErr := items[i]
		if items == nil {
			itemErr = err
		}
		switch {
		case itemErr == nil:
			e.obs.settled(item.s, nil)
			ended = append(ended, item)
		case errors.Is(itemErr, ErrLeaseLost), errors.Is(itemErr, ErrInvalid):
			e.refusedSettlement(item, itemErr)
		default:
			again = append(again, item)
		}
	}
	e.tidy(ended)
	failed := !answered(err)
	pause := e.settles.landed(len(batch), again, failed)
	poke(e.room)
	if failed {
		// Results come before new claims, but one that can't be recorded must not
		// stop them for good: half of the time is the claims'.
		e.mu.Lock()
		e.pause = e.clock.mono() + pause/2
		e.mu.Unlock()
	}
	return pause
}

// refusedSettlement lets go of a task that is no longer this process's. Its index
// entry is the newest holder's business.
func (e *engine) refusedSettlement(item settlement, err error) {
	e.log.Warn("dueclaim: settlement refused", "id", string(item.s.Grant.ID), "token", item.s.Grant.Token,
		"outcome", item.s.Outcome.String(), "err", err)
	e.obs.settled(item.s, err)
	e.drop(item.job)
}

// tidy lets go of settled jobs and puts the index right: what is done leaves it,
// what is due again moves there.
func (e *engine) tidy(ended []settlement) {
	if len(ended) == 0 {
		return
	}
	var gone []Entry
	var again []Entry
	var moves []Move
	e.mu.Lock()
	for _, item := range ended {
		// First out of hand, then into the index: else a take would find it in hand.
		if id := item.s.Grant.ID; e.hand[id] == item.job {
			delete(e.hand, id)
		}
		at := Entry{ID: item.s.Grant.ID, Due: item.job.standing}
		if item.s.Due.IsZero() {
			gone = append(gone, at)
			continue
		}
		again = append(again, Entry{ID: at.ID, Due: item.s.Due})
		if item.s.Due.After(at.Due) { // else Add, where the earlier due time stays, does it
			moves = append(moves, Move{ID: at.ID, From: at.Due, To: item.s.Due})
		}
	}
	e.mu.Unlock()
	e.removeFromIndex(gone)
	if len(again) > 0 {
		e.addToIndex(again)
		e.moveInIndex(moves)
	}
}

// flush settles what is queued, at most until hard is done, for Tick.
func (e *engine) flush(hard context.Context, tries int) error {
	for range tries {
		batch := e.settles.pop()
		if len(batch) == 0 {
			break
		}
		await(hard, nil, e.sendSettlements(batch))
	}
	if n := e.settles.len(); n > 0 {
		return &unsettledError{n: n, err: e.health.get().Store.Err}
	}
	return nil
}

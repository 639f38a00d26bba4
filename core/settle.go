package core

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// settleLinger is how long a settle batch waits for company when there is little
// to do: at a thousand tasks a second it cuts the statements to fifty. A crash
// costs the tasks that returned in this time another run.
const settleLinger = 20 * time.Millisecond

const (
	fewSettled    = 50       // fewer wait for company
	enoughSettled = maxBatch // and no longer, when they are so many
)

// A result that was not recorded is set aside for a growing time of its own, so
// that others go on: from settlePause up to settleMost, or settleBusyMost where
// only its row was locked.
const (
	settlePause    = 20 * time.Millisecond
	settleBusyMost = time.Second
	settleMost     = 5 * time.Second
)

// settlement is a job's end on its way to the claim store, a part of the job.
type settlement struct {
	job   *Job
	s     Settlement
	tries backoff
	after time.Duration // on the monotonic clock: leave it alone until then

	locked bool // its row was locked when it was last tried; set before it is set aside
}

// settleQueue gathers settlements while a batch is in flight.
type settleQueue struct {
	mu       sync.Mutex
	list     []*settlement
	aside    []*settlement // to be tried again when their time has come
	inFlight int
	err      error // why the last batch was not accepted whole
	limit    int   // size of a batch; falls while batches fail, to isolate one that can't be settled
	down     backoff
	more     chan struct{} // poked when one is added
	enough   chan struct{} // poked when a batch is worth its statement
}

func (q *settleQueue) init() {
	q.limit = maxBatch
	q.down = backoff{least: settlePause, most: time.Second}
	q.more, q.enough = make(chan struct{}, 1), make(chan struct{}, 1)
}

// len counts what is not accepted or refused yet.
func (q *settleQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) + len(q.aside) + q.inFlight
}

// mostLocked is how many results may wait for locked rows beside all others. Each costs
// memory and a heartbeat.
const mostLocked = 10_000

// backlog counts what new claims wait for. Results whose rows are locked don't hold them
// up, unless there are very many: somebody else's transaction must not stop the queue.
func (q *settleQueue) backlog() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	locked := 0
	for _, item := range q.aside {
		if item.locked {
			locked++
		}
	}
	return len(q.list) + len(q.aside) + q.inFlight - min(locked, mostLocked)
}

func (q *settleQueue) push(items ...*settlement) {
	q.mu.Lock()
	q.list = append(q.list, items...)
	enough := len(q.list) >= enoughSettled
	q.mu.Unlock()
	poke(q.more)
	if enough {
		poke(q.enough)
	}
}

// pop takes the next batch, in flight from now on: new ones first, then those that
// were set aside for long enough. For an empty one, wait is when to look again, if
// nothing is added before.
func (q *settleQueue) pop(now time.Duration) (batch []*settlement, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.list), q.limit)
	batch = slices.Clone(q.list[:n])
	clear(q.list[:n]) // the array must not keep jobs, and so payloads, that have gone
	q.list = q.list[n:]
	wait = time.Hour
	q.aside = slices.DeleteFunc(q.aside, func(item *settlement) bool {
		ready := item.after <= now && len(batch) < q.limit
		if ready {
			batch = append(batch, item)
		} else {
			wait = min(wait, item.after-now)
		}
		return ready
	})
	q.inFlight += len(batch)
	return batch, wait
}

// landed ends a batch of n with the store's answer err; again are those that have
// to be tried again. It returns how long to pause before the next.
func (q *settleQueue) landed(n int, again []*settlement, err error) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight -= n
	q.aside = append(q.aside, again...)
	if err != nil {
		q.err = err
	}
	if !answered(err) {
		q.limit = max(1, q.limit/2)
		return q.down.failed()
	}
	q.down.ok()
	q.limit = min(maxBatch, q.limit*2)
	return 0
}

// unsettled returns an error that counts what is left, or nil.
func (q *settleQueue) unsettled() error {
	n := q.len()
	if n == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return &unsettledError{n: n, err: q.err}
}

// settle hands a job's end to the settlers, and gives back the slots that it had.
func (e *engine) settle(j *Job, s Settlement, slots int) {
	s.Grant = j.Grant
	now := e.clock.mono()
	e.mu.Lock()
	j.state, j.settling = settling, now
	e.used -= slots
	e.mu.Unlock()
	j.end = settlement{job: j, s: s}
	e.settles.push(&j.end)
	if slots > 0 {
		poke(e.room)
	}
}

// settledByHandler tidies up after a handler that settled its task itself, as said
// says, where it says so.
func (e *engine) settledByHandler(j *Job, said Settlement) {
	s := Settlement{Grant: j.Grant}
	if said.Grant == j.Grant && said.Check() == nil {
		s = said
		if !s.Due.IsZero() {
			s.Due = CeilMilli(s.Due)
		}
	}
	e.obs.settled(s, nil)
	j.end = settlement{job: j, s: s}
	e.tidy([]*settlement{&j.end})
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
		batch, wait := e.settles.pop(e.clock.mono())
		if len(batch) == 0 {
			if ctx.Err() != nil { // another settler's batch is in flight, or some are set aside
				wait = min(wait, settleLinger)
			}
			e.awaitMore(ctx, hard, wait)
			continue
		}
		poke(e.settles.more) // another settler may take what is left
		await(hard, nil, e.sendSettlements(batch))
	}
}

// awaitMore waits for d, or until there is more to settle, or for the first of
// ctx and hard that is not done yet.
func (e *engine) awaitMore(ctx, hard context.Context, d time.Duration) {
	if ctx.Err() != nil {
		ctx = hard
	}
	await(ctx, e.settles.more, d)
}

// linger waits a moment for company when little is queued.
func (e *engine) linger(ctx context.Context) {
	q := &e.settles
	q.mu.Lock()
	few := len(q.list) > 0 && len(q.list) < fewSettled
	if few {
		select {
		case <-q.enough: // what was enough is gone
		default:
		}
	}
	q.mu.Unlock()
	if few {
		await(ctx, q.enough, settleLinger)
	}
}

// sendSettlements settles a batch and returns how long to pause: longer after
// each failure in a row. What has an unknown outcome goes back into the queue.
func (e *engine) sendSettlements(batch []*settlement) time.Duration {
	list := make([]Settlement, len(batch))
	for i, item := range batch {
		list[i] = item.s
	}
	now := FloorMilli(e.clock.now())
	err := e.call.once(e.base, func(ctx context.Context) error { return e.store.Settle(ctx, now, list) })
	e.health.store("settle", err)
	items := itemErrors(err)
	var ended, again []*settlement
	for i, item := range batch {
		itemErr := items[i]
		if items == nil {
			itemErr = err
		}
		switch {
		case itemErr == nil:
			e.obs.settled(item.s, nil)
			ended = append(ended, item)
		case errors.Is(itemErr, ErrUnfinished) && item.s.Outcome == Done:
			e.unfinished(item, itemErr)
		case errors.Is(itemErr, ErrLeaseLost), errors.Is(itemErr, ErrInvalid), errors.Is(itemErr, ErrUnfinished):
			e.refusedSettlement(item, itemErr)
		case e.superseded(item.job): // the store would refuse it, if it did answer
			e.refusedSettlement(item, errors.Join(ErrLeaseLost, itemErr))
		default:
			item.tries.least, item.tries.most = settlePause, settleMost
			if item.locked = errors.Is(itemErr, ErrBusy); item.locked {
				item.tries.most = settleBusyMost
			}
			item.after = e.clock.mono() + item.tries.failed()
			again = append(again, item)
		}
	}
	e.tidy(ended)
	pause := e.settles.landed(len(batch), again, err)
	poke(e.room)
	if !answered(err) {
		// Results come before new claims, but one that can't be recorded must not
		// stop them for good: half of the time is the claims'.
		e.mu.Lock()
		e.pause = e.clock.mono() + pause/2
		e.mu.Unlock()
	}
	return pause
}

// unfinished settles a job again, as the failure that it is: its handler returned
// nil and the row stands as it was.
func (e *engine) unfinished(item *settlement, err error) {
	e.log.Warn("dueclaim: a handler returned nil without having done its step; the attempt failed",
		"id", string(item.s.Grant.ID), "token", item.s.Grant.Token, "err", err)
	e.obs.settled(item.s, err)
	e.settle(item.job, e.settlementOf(item.job, ending{}, err.Error()), 0)
}

// superseded tells whether a job was abandoned and its id granted to this process
// again: the store would refuse its result.
func (e *engine) superseded(j *Job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return j.superseded
}

// dropSuperseded takes such results out of the queue. They must not pile up where
// the store never answers about an id, as claims wait while many are queued.
func (e *engine) dropSuperseded() {
	var out []*settlement
	doomed := func(item *settlement) bool {
		drop := e.superseded(item.job)
		if drop {
			out = append(out, item)
		}
		return drop
	}
	e.settles.mu.Lock()
	e.settles.list = slices.DeleteFunc(e.settles.list, doomed)
	e.settles.aside = slices.DeleteFunc(e.settles.aside, doomed)
	e.settles.mu.Unlock()
	for _, item := range out {
		e.refusedSettlement(item, ErrLeaseLost)
	}
}

// refusedSettlement lets go of a task that is no longer this process's. Its index
// entry is the newest holder's business.
func (e *engine) refusedSettlement(item *settlement, err error) {
	level := slog.LevelWarn
	if item.job.saidLost { // the handler knew: its own SettleTx was refused
		level = slog.LevelDebug
	}
	e.log.Log(context.Background(), level, "dueclaim: settlement refused", "id", string(item.s.Grant.ID), "token", item.s.Grant.Token,
		"outcome", item.s.Outcome.String(), "err", err)
	e.obs.settled(item.s, err)
	e.drop(item.job)
}

// tidy lets go of settled jobs and puts the index right: what is done leaves it,
// what is due again moves there.
func (e *engine) tidy(ended []*settlement) {
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
		e.endAbandoned(item.job)
		e.failures.note(item.job, item.s)
		e.rest(item.s.Grant.ID, item.s.Due)
		at := Entry{ID: item.s.Grant.ID, Due: item.job.standing}
		if item.s.Due.IsZero() {
			gone = append(gone, at)
			continue
		}
		again = append(again, Entry{ID: at.ID, Due: item.s.Due})
		moves = append(moves, Move{ID: at.ID, From: at.Due, To: item.s.Due})
	}
	e.mu.Unlock()
	e.removeFromIndex(gone)
	if len(again) == 0 {
		return
	}
	if e.undated {
		// The store can't tell that others were granted a task since, which they may hold
		// or have back off: an entry that isn't where this grant left it is theirs.
		e.moveInIndex(moves)
		e.restore(again)
		return
	}
	e.addToIndex(again)
	// Where that was nearer, Add, where the earlier due time stays, has done it.
	e.moveInIndex(slices.DeleteFunc(moves, func(m Move) bool { return !m.To.After(m.From) }))
}

// flush settles what is queued, for Tick. It gives up when nothing was recorded
// for as long as a shutdown would try.
func (e *engine) flush() error {
	last := e.clock.mono() // when something was recorded
	for left := e.settles.len(); left > 0 && e.clock.mono()-last < settleGrace; left = e.settles.len() {
		batch, wait := e.settles.pop(e.clock.mono())
		if len(batch) > 0 {
			wait = e.sendSettlements(batch)
		}
		if e.settles.len() < left {
			last = e.clock.mono()
		}
		await(e.base, nil, wait)
	}
	return e.settles.unsettled()
}

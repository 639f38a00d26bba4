package core

import (
	"context"
	"errors"
	"slices"
	"time"
)

// claim puts a batch to the claim store, starts what was granted and repairs the
// index by the other verdicts. A slot is reserved for each id. Its error has been
// dealt with.
func (e *engine) claim(b takenBatch) error {
	defer e.claimEnded()
	b.ids, b.jobs = e.hold(b)
	if len(b.ids) == 0 {
		return nil
	}
	claimed, took, err := e.askStore(&b)
	if err != nil {
		e.obs.claimed(ClaimStats{Took: took, Err: err})
		e.giveUpClaim(b)
		return err
	}
	e.storeOK()
	e.sort(b, claimed, took)
	return nil
}

// hold marks ids as in hand and returns those that weren't before, and jobs for
// them. An id that this process has in hand already is not claimed again; its job
// notes where the index has it now.
func (e *engine) hold(b takenBatch) ([]ID, []*Job) {
	kept, jobs := b.ids[:0], make([]*Job, 0, len(b.ids))
	e.mu.Lock()
	for _, id := range b.ids {
		if j, ok := e.hand[id]; ok {
			if !b.direct() {
				j.standing = b.standing
			}
			continue
		}
		j := &Job{Grant: Grant{ID: id}, clock: e.clock, state: claiming, standing: b.standing}
		e.hand[id] = j
		kept, jobs = append(kept, id), append(jobs, j)
	}
	n := len(b.ids) - len(kept)
	e.mu.Unlock()
	e.free(n)
	return kept, jobs
}

// askStore calls Claim, again while the outcome is unknown: the same Holder
// finds what an earlier try was granted. As long as none was done, each asks for a lease
// of its own: one asked for long ago would be over too soon.
func (e *engine) askStore(b *takenBatch) (claimed []Claimed, took time.Duration, err error) {
	b.lease.Holder = e.nextHolder()
	began := e.clock.mono()
	asked, old := false, false // old: the lease was asked for before, and never done
	err = e.call.call(e.base, func(ctx context.Context) (err error) {
		if old {
			again := e.newBatch()
			again.lease.Holder = b.lease.Holder
			b.lease, b.deadline = again.lease, again.deadline
		}
		b.lease.By = e.clock.by(ctx)
		claimed, err = e.store.Claim(ctx, b.ids, b.lease)
		if err == nil && !slices.EqualFunc(claimed, b.jobs, func(c Claimed, j *Job) bool { return c.ID == j.Grant.ID }) {
			err = errShortAnswer
		}
		old = (old || !asked) && errors.Is(err, ErrNotDone)
		asked = true
		if errors.Is(err, ErrNotDone) && !errors.Is(err, ErrNoConnection) {
			poke(e.doubt) // the clock may have jumped, so that By was past
		}
		return err
	})
	e.health.store("claim", err)
	return claimed, e.clock.mono() - began, err
}

// giveUpClaim lets go of ids whose claim failed: they come due again after a
// back-off of their own, so that one that can't be claimed parts from those that
// only were in its batch. If the claim took effect after all, others find them
// held until the lease ends.
func (e *engine) giveUpClaim(b takenBatch) {
	pause := e.pauseStore()
	now := e.clock.now()
	moves := make([]Move, len(b.ids))
	e.mu.Lock()
	for i, id := range b.ids {
		delete(e.hand, id)
		d := max(pause, e.setAside(id, func(r *refusal) *backoff { return &r.failed }).until-e.clock.mono())
		moves[i] = Move{ID: id, From: b.standing, To: CeilMilli(now.Add(d))}
	}
	e.mu.Unlock()
	e.free(len(b.ids))
	if !b.direct() {
		e.moveInIndex(moves)
	}
}

// sort acts on each verdict.
func (e *engine) sort(b takenBatch, claimed []Claimed, took time.Duration) {
	stats := ClaimStats{Took: took}
	now := e.clock.now()
	soonest := CeilMilli(now.Add(leastMove))
	later := func(t time.Time) time.Time {
		if t.Before(soonest) {
			return soonest
		}
		return t
	}
	granted := make([]*Job, 0, len(claimed))
	var moves []Move
	var gone, held []Entry
	var refused []refusedID
	superseded := false
	e.mu.Lock()
	for i := range claimed {
		c, j := &claimed[i], b.jobs[i]
		var to time.Time
		switch c.Verdict {
		case Granted:
			stats.Granted++
			e.fill(j, c, b)
			granted = append(granted, j)
			if old := e.abandoned[c.ID]; old != nil {
				old.superseded = true
				superseded = true
				delete(e.abandoned, c.ID)
			}
			delete(e.refusals, c.ID)
			if b.direct() {
				held = append(held, Entry{ID: c.ID, Due: j.standing})
			}
			continue
		case Held:
			stats.Held++
			to = CeilMilli(later(leaseEndInIndex(c.At)).Add(e.opt.Ahead)) // to be taken when the lease is over, not ahead of it
		case NotDue:
			stats.NotDue++
			to = later(c.At)
		case Gone:
			stats.Gone++
			gone = append(gone, Entry{ID: c.ID, Due: b.standing})
			delete(e.refusals, c.ID)
			delete(e.rests, c.ID)
			e.failures.forget(c.ID)
		default:
			stats.Refused++
			r := e.refused(c.ID, c.Err)
			refused = append(refused, r)
			to = CeilMilli(now.Add(r.pause + e.opt.Ahead))
		}
		delete(e.hand, c.ID)
		if c.Verdict != Gone {
			moves = append(moves, Move{ID: c.ID, From: b.standing, To: to})
		}
	}
	e.mu.Unlock()
	e.start(granted) // first: hooks and the log may take their time
	e.obs.claimed(stats)
	e.tellRefused(refused)
	if superseded {
		e.dropSuperseded()
	}

	e.free(len(claimed) - len(granted))
	if b.direct() { // from the sweep: whatever the index has is repaired when it comes up
		e.addToIndex(held)
		return
	}
	e.removeFromIndex(gone)
	e.moveInIndex(moves)
}

// fill makes a job of a grant. The caller holds the lock.
func (e *engine) fill(j *Job, c *Claimed, b takenBatch) {
	j.Task, j.Grant, j.Attempt, j.Crashes = c.Task, c.Grant, c.Attempt, c.Crashes
	if j.uncounted = c.Attempt == 0; j.uncounted {
		j.Attempt = 1 + e.failures.get(c.ID) + c.Crashes
	}
	j.notBefore = c.Task.Due
	if c.NotBefore.After(j.notBefore) {
		j.notBefore = c.NotBefore
	}
	j.state = waiting
	j.leaseUntil = c.At
	if j.leaseUntil.IsZero() {
		j.leaseUntil = b.lease.Until
	}
	if j.standing.IsZero() {
		j.standing = leaseEndInIndex(j.leaseUntil)
	}
	j.deadline.Store(int64(b.deadline))
	if b.deadline < e.lookAt {
		poke(e.sooner)
	}
	j.ctx, j.cancel = context.WithCancelCause(e.base)
}

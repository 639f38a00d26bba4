package core

import "time"

// refusal is an id that the store would not change, or that was in a claim which
// failed.
type refusal struct {
	refused, failed backoff       // apart: a long outage must not make the first refusal after it a grave one
	until           time.Duration // on the monotonic clock
	quiet           time.Duration // on the monotonic clock: no line in the log before
}

// refusedID is a refusal to be told of.
type refusedID struct {
	id    ID
	err   error // nil: the store gives no reason
	times int
	pause time.Duration
	loud  bool // to be logged
}

// refused counts a refusal: the id is left alone for a while. One refusal without
// a reason is common, a row that somebody else is about to change; more are
// logged, and so is each that has a reason. The caller holds the lock.
func (e *engine) refused(id ID, reason error) refusedID {
	r := e.setAside(id, func(r *refusal) *backoff { return &r.refused })
	now := e.clock.mono()
	told := refusedID{id: id, err: reason, times: r.refused.fails, pause: r.until - now}
	if (reason != nil || told.times > 2) && now >= r.quiet {
		told.loud, r.quiet = true, r.until
	}
	return told
}

// tellRefused logs and observes refusals. It must not be called under the lock.
func (e *engine) tellRefused(all []refusedID) {
	for _, r := range all {
		e.obs.refused(r.id, r.err)
		switch {
		case !r.loud:
		case r.err != nil:
			e.log.Warn("dueclaim: the claim store refuses an id; it is set aside",
				"id", string(r.id), "reason", r.err, "times", r.times, "next_try", r.pause)
		default:
			e.log.Warn("dueclaim: the claim store doesn't change a row that looks claimable (locked, a trigger, row security?)",
				"id", string(r.id), "times", r.times, "next_try", r.pause)
		}
	}
}

// setAside makes sweeps and the index leave an id alone for a random time, which
// grows with the times that the same happened to it. The caller holds the lock.
func (e *engine) setAside(id ID, why func(*refusal) *backoff) *refusal {
	r := e.refusals[id]
	if r == nil {
		if len(e.refusals) >= 10_000 {
			clear(e.refusals) // a hint only: forgetting costs a claim
		}
		r = &refusal{
			refused: backoff{least: 2 * leastMove, most: time.Minute},
			failed:  backoff{least: 2 * leastMove, most: 5 * time.Second},
		}
		e.refusals[id] = r
	}
	r.until = e.clock.mono() + why(r).failed()
	return r
}

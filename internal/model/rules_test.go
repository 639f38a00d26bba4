package model

import (
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// rules are the store's transitions, and what the workers and the index do.
type rules struct {
	claim  func(*claim.Row, core.Lease) bool
	extend func(*claim.Row, core.Grant, time.Time) bool
	settle func(*claim.Row, core.Settlement) bool
	insert func(newest int64) int64 // the first token of an id that is used again after its row was deleted

	noSweep  bool // nobody looks into the store
	noCancel bool // handlers aren't cancelled at their deadlines
	noGrace  bool // leases are taken over at once, and handlers cancelled at their very end
}

// right are the rules as they are.
func right() rules {
	return rules{claim: (*claim.Row).Claim, extend: (*claim.Row).Extend, settle: (*claim.Row).Settle, insert: func(newest int64) int64 { return newest + 1 }}
}

func (r *rules) grace() int8 {
	if r.noGrace {
		return -1
	}
	return grace
}

func (r *rules) margin() int8 {
	if r.noGrace {
		return 0
	}
	return margin
}

// The instant and the token that stand for "now" and "the newest" in the store's
// terms. A tick is a millisecond.
const nowMs, newest = 1000, 100

func at(ticks int8) time.Time { return claim.Time(nowMs + int64(ticks)) }

func name(h holder) string {
	if h == 0 {
		return ""
	}
	return fmt.Sprint("claim ", h)
}

// row returns the store's row of a task.
func (s *state) row(t int8) claim.Row {
	r := s.rows[t]
	c := claim.Row{ID: "x", Token: newest - int64(r.low), Holder: name(r.holder)}
	switch r.status {
	case pending:
		c.Status = claim.Pending
	case running:
		c.Status, c.LeaseUntil = claim.Running, nowMs+int64(r.lease)
	case finished:
		c.Status = claim.DoneState
	}
	return c
}

func (m msg) grant() core.Grant {
	return core.Grant{ID: "x", Token: newest - int64(m.older), Holder: name(m.holder)}
}

// apply has a message take effect. broken is the promise that this breaks, if any.
func (r *rules) apply(s *state, m msg) (a answer, broken string) {
	row := s.row(m.task)
	before := row
	mine := row.Status == claim.Running && m.grant().Token == row.Token && m.grant().Holder == row.Holder
	to := &s.rows[m.task]
	switch m.kind {
	case claims:
		l := core.Lease{Holder: name(m.holder), Now: at(m.sent - r.grace()), DueBy: at(m.sent), Until: at(m.sent + lease)}
		if r.claim(&row, l) {
			switch {
			case before.Status == claim.DoneState:
				broken = "a finished task was granted"
			case before.Status == claim.Running && to.lease >= -r.grace():
				broken = "a live lease was taken over"
			case row.Token <= newest:
				broken = "a grant without a higher token"
			}
			s.granted(m.task)
			to.status, to.holder, to.lease, to.low = running, m.holder, m.sent+lease, 0
		}
		switch row.Claimed(l).Verdict {
		case core.Granted:
			return ok, broken
		case core.Gone:
			return gone, broken
		default:
			return held, broken
		}
	case extends:
		if r.extend(&row, m.grant(), at(m.sent+lease)) {
			if !mine {
				broken = "a lease was extended by one who doesn't hold it"
			}
			to.lease = int8(row.LeaseUntil - nowMs)
			return ok, broken
		}
		if row.Extended(m.grant(), at(m.sent+lease)) == nil {
			return ok, "an extension that changed nothing was accepted"
		}
		return refused, ""
	default:
		return r.applySettle(s, m, row, mine)
	}
}

// reuse deletes a finished row and inserts one of the same id, by whatever producer.
func (r *rules) reuse(s *state, t int8) {
	first := r.insert(newest)
	if first > newest { // then that is the newest, and no message has it
		s.granted(t)
		first = newest
	}
	s.rows[t] = row{status: pending, reused: true, low: int8(newest - first)}
}

func (r *rules) applySettle(s *state, m msg, row claim.Row, mine bool) (a answer, broken string) {
	what := []core.Outcome{core.Done, core.Retry, core.Released}[m.outcome]
	to := &s.rows[m.task]
	latest := m.older == 0 && m.holder == to.holder
	if !r.settle(&row, core.Settlement{Grant: m.grant(), Outcome: what, Due: at(0)}) {
		if row.Settled(m.grant()) != nil {
			return refused, ""
		}
		if !latest {
			broken = "an older holder's settlement was accepted"
		}
		return ok, broken
	}
	switch {
	case !latest:
		broken = "an older holder's settlement was accepted"
	case !mine:
		broken = "a settlement took effect twice"
	}
	to.lease = 0
	if row.Status == claim.DoneState {
		to.status = finished
		to.dones++
	} else {
		to.status = pending
		if m.outcome == retry {
			to.retries++
		}
	}
	if to.dones > 1 {
		broken = "two completions were recorded"
	}
	return ok, broken
}

package history

import (
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dueclaim/dueclaim/core"
)

// kind is what a call does with an id.
type kind int

const (
	inserts kind = iota
	claims
	extends
	settles
	cancels
	reschedules
	waits
	kindCount
)

func (k kind) String() string {
	return [...]string{"Insert", "Claim", "Extend", "Settle", "Cancel", "Reschedule", "Waiting"}[k]
}

// op is one call, as far as it concerns one id. Batches take effect item by item,
// so that each item is an op of its own with the times of the whole call.
type op struct {
	kind    kind
	call    string // Call.ID
	lease   core.Lease
	grant   core.Grant
	outcome core.Outcome
	now     time.Time
	due     time.Time // Insert, Settle; Reschedule: To
	from    time.Time
	until   time.Time // Extend
	items   int       // of the call

	// See Options.ReadsBack: such a call is two ops, an early one that may have the
	// effect and one that has the answer, of the same number from 1.
	early  bool
	number int
}

// answer is what came back for an op.
type answer struct {
	unknown bool   // the reply was lost, or the call failed in another way
	refused string // the sentinel of the item that failed
	verdict core.Verdict
	at      time.Time // of the verdict; of a waiting row its due time
	token   int64
	// Of a grant: Attempt, Crashes and Task.Due.
	attempt, crashes int
	planned          time.Time
	fate             core.Fate
	waits            bool
}

// status is the state of a task; absent: there is no row.
type status int

const (
	absent status = iota
	pending
	running
	done
	dead
	cancelled
)

func (s status) String() string {
	return [...]string{"absent", "pending", "running", "done", "dead", "cancelled"}[s]
}

// state is all that the contract has to say about one id. States are compared as
// values: its times are UTC.
type state struct {
	status       status
	due, planned time.Time
	// token is that of the newest grant, or what the next one must be above, also where
	// the row is gone. After
	// a claim whose reply was lost it is unsure: the least that it can be.
	token             int64
	unsure            bool
	holder            string
	until             time.Time
	attempts, crashes int
	call              string
	wasRunning        bool
	rescheduled       bool   // since the newest grant
	answered          uint64 // a bit for each number whose answer was given: no early op may follow it
}

// deleted is the state without its row. What tokens there were still counts.
func (s state) deleted() state { return state{token: s.token} }

func (s state) live() bool { return s.status == pending || s.status == running }

func (s state) heldAt(now time.Time) bool { return s.status == running && !s.until.Before(now) }

// holds says whether the newest grant is g, and returns the state with its token
// made sure.
func (s state) holds(g core.Grant) (state, bool) {
	if s.status == absent || s.holder != g.Holder || g.Token < s.token || g.Token > s.token && !s.unsure {
		return s, false
	}
	s.token, s.unsure = g.Token, false
	return s, true
}

// rules is the contract of one id, one step after the other.
type rules struct{ keeps bool }

// model is what porcupine asks. An op whose outcome is unknown has two next
// states, so a state of the checker is a set of states.
func (r rules) model() porcupine.Model {
	many := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) []any {
			var next []any
			for _, n := range r.step(s.(state), in.(op), out.(answer)) {
				next = append(next, n)
			}
			return next
		},
		DescribeOperation: func(in, out any) string { return showOp(in.(op)) + " → " + showAnswer(in.(op), out.(answer)) },
		DescribeState:     func(s any) string { return showState(s.(state)) },
	}
	return many.ToModel()
}

// step returns the states that s may be in after in was answered by out; none
// where the contract forbids that answer.
func (r rules) step(s state, in op, out answer) []state {
	var mark uint64
	if in.number > 0 {
		mark = 1 << (in.number - 1)
	}
	answered := s.answered
	if in.early && answered&mark != 0 {
		return []state{s}
	}
	if !in.early {
		answered |= mark
	}
	s.answered = 0
	next := r.either(s, in, out)
	for i := range next {
		next[i].answered = answered
	}
	return next
}

func (r rules) either(s state, in op, out answer) []state {
	next := r.from(s, in, out)
	if !r.keeps && s.status == cancelled {
		// Free: how soon a cancelled row goes from a store that doesn't keep it, so
		// that a repeat may still find it.
		next = append(next, r.from(s.deleted(), in, out)...)
	}
	return next
}

// readLate says whether the answer may have been read some time after the effect,
// by a store that reads back.
func (in op) readLate(out answer) bool {
	switch {
	case out.unknown:
		return false
	case in.kind == claims:
		return out.verdict != core.Granted
	case in.kind == inserts:
		return out.refused != ""
	default:
		return in.kind == cancels || out.refused != "" && in.items > 1
	}
}

func (r rules) from(s state, in op, out answer) []state {
	next, right := r.apply(s, in)
	switch {
	case out.unknown:
		return []state{s, next}
	case out.refused == sentinel(core.ErrBusy), out.verdict == core.Refused:
		return []state{s} // Free: whether a row is locked just now; it is as it was
	case in.kind == settles && s.rescheduled && right.refused == "" && next == s && out.refused == sentinel(core.ErrLeaseLost):
		return []state{s} // Free: whether a repeat still finds its task settled after a Reschedule
	}
	if right.verdict == core.Granted && out.verdict == core.Granted {
		// Free: how tokens are counted, as long as they rise.
		if out.token < next.token || out.token > next.token && !next.unsure {
			return nil
		}
		next.token, next.unsure, right.token = out.token, false, out.token
	}
	if right != out {
		return nil
	}
	return []state{next}
}

// apply is the effect of in on s, and its answer.
func (r rules) apply(s state, in op) (state, answer) {
	switch in.kind {
	case inserts:
		return r.insert(s, in)
	case claims:
		return r.claim(s, in)
	case extends:
		return r.extend(s, in)
	case settles:
		return r.settle(s, in)
	case cancels:
		return r.cancel(s, in)
	case reschedules:
		return r.reschedule(s, in)
	default:
		if s.live() && !s.heldAt(in.now) {
			return s, answer{waits: true, at: s.due}
		}
		return s, answer{}
	}
}

func refusal(err error) answer { return answer{refused: sentinel(err)} }

func (r rules) insert(s state, in op) (state, answer) {
	switch {
	case s.status != absent && s.call == in.call:
		return s, answer{}
	case s.live():
		return s, refusal(core.ErrExists)
	}
	return state{status: pending, due: in.due, planned: in.due, token: s.token, call: in.call}, answer{}
}

func (r rules) claim(s state, in op) (state, answer) {
	switch {
	case !s.live():
		return s, answer{verdict: core.Gone}
	case s.status == running && s.holder == in.lease.Holder: // a repeat
	case s.heldAt(in.lease.Now):
		return s, answer{verdict: core.Held, at: s.until}
	case s.due.After(in.lease.DueBy):
		return s, answer{verdict: core.NotDue, at: s.due}
	default:
		if s.status == running {
			s.crashes++
		}
		s.attempts++
		s.status, s.holder, s.until = running, in.lease.Holder, in.lease.Until
		s.token, s.unsure, s.rescheduled = s.token+1, true, false
	}
	return s, answer{verdict: core.Granted, at: s.until, token: s.token, attempt: s.attempts, crashes: s.crashes, planned: s.planned}
}

func (r rules) extend(s state, in op) (state, answer) {
	s, ok := s.holds(in.grant)
	if !ok || s.status != running {
		return s, refusal(core.ErrLeaseLost)
	}
	if in.until.After(s.until) {
		s.until = in.until
	}
	return s, answer{}
}

func (r rules) settle(s state, in op) (state, answer) {
	s, ok := s.holds(in.grant)
	switch {
	case !ok || s.status == cancelled:
		return s, refusal(core.ErrLeaseLost)
	case s.status != running: // a repeat
		return s, answer{}
	}
	switch in.outcome {
	case core.Done:
		if s.status = done; !r.keeps {
			s = s.deleted()
		}
	case core.DeadLetter:
		s.status = dead
	case core.Retry:
		s.status, s.due, s.planned = pending, in.due, in.due
	default: // Released
		s.status, s.due = pending, in.due
		s.attempts--
	}
	return s, answer{}
}

func (r rules) cancel(s state, in op) (state, answer) {
	switch {
	case s.status == absent:
		return s, answer{fate: core.Unknown}
	case s.status == done || s.status == dead:
		return s, answer{fate: core.Finished}
	case s.live():
		s.wasRunning = s.heldAt(in.now)
	}
	fate := core.Cancelled
	if s.wasRunning {
		fate = core.WasRunning
	}
	s.status = cancelled
	return s, answer{fate: fate}
}

func (r rules) reschedule(s state, in op) (state, answer) {
	switch {
	case s.status != pending:
		return s, refusal(core.ErrNotPending)
	case s.due.Equal(in.due):
		return s, answer{}
	case !in.from.IsZero() && !s.due.Equal(in.from):
		return s, refusal(core.ErrMoved)
	}
	s.due, s.planned, s.rescheduled = in.due, in.due, true
	return s, answer{}
}

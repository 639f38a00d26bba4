package claim

import (
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// The transitions are the protocol itself, without a database: claim.Memory makes
// them, a model of the protocol searches them, and who writes a store may compare it
// with them.

// Claim is the transition of that name: where lease may have r, it makes r a grant
// to lease.Holder and returns true. Else, and for a repeat that finds its own grant,
// it changes nothing; [Row.Claimed] says which.
func (r *Row) Claim(lease core.Lease) bool {
	repeated := r.Status == Running && r.Holder == lease.Holder
	expired := r.Status == Running && r.LeaseUntil < lease.Now.UnixMilli()
	if repeated || r.Status != Pending && !expired || r.Due > lease.DueBy.UnixMilli() {
		return false
	}
	r.Status, r.Holder, r.LeaseUntil = Running, lease.Holder, ceil(lease.Until)
	r.Token++
	r.Attempts++
	if expired {
		r.Crashes++
	}
	return true
}

// Extend is the transition of that name: where g holds r, the lease ends at until,
// or stays where it ends later. False: g doesn't hold it.
func (r *Row) Extend(g core.Grant, until time.Time) bool {
	if r.Status != Running || !r.heldBy(g) {
		return false
	}
	r.LeaseUntil = max(r.LeaseUntil, ceil(until))
	return true
}

// Settle is the transition of that name: where the settlement's grant holds r, it
// ends so. False, and nothing changed: it doesn't hold r ([Row.Settled] says what
// that means), or there is no such outcome.
func (r *Row) Settle(s core.Settlement) bool {
	if r.Status != Running || !r.heldBy(s.Grant) {
		return false
	}
	switch s.Outcome {
	case core.Done:
		r.Status, r.Due = DoneState, 0
	case core.DeadLetter:
		r.Status, r.Due = DeadState, 0
	case core.Retry:
		r.Status, r.Due = Pending, ceil(s.Due)
		r.Planned = r.Due
	case core.Released:
		r.Status, r.Due = Pending, ceil(s.Due)
		r.Attempts--
	default:
		return false
	}
	r.LeaseUntil = 0
	return true
}

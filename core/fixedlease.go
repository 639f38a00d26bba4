package core

import (
	"fmt"
	"time"
)

// FixedLease is an optional capability of a Claimer on rows that hold the moment
// of a claim and not the lease's end, such as the time of the last change: every
// process must count the same length from it.
type FixedLease interface {
	// LeaseFor is the length of every lease; 0: Options.Lease decides.
	LeaseFor() time.Duration
}

// fixLease takes a store's own length of leases over into opt, and refuses
// another one.
func fixLease(opt Options, store Claimer) (Options, error) {
	fixed, ok := store.(FixedLease)
	if !ok || fixed.LeaseFor() == 0 {
		return opt, nil
	}
	if opt.Lease != 0 && opt.Lease != fixed.LeaseFor() {
		return opt, fmt.Errorf("%w: Options.Lease is %v and the claim store's leases last %v; leave Options.Lease out or give both the same value", ErrInvalid, opt.Lease, fixed.LeaseFor())
	}
	opt.Lease = fixed.LeaseFor()
	return opt, nil
}

package conformance

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// FaultyClaimer returns c behind faults. It has the optional capabilities of c,
// those of a core.Store among them, but for hidden ones. It keeps the contract
// as far as one can: whatever fails has an unknown outcome.
func FaultyClaimer(c core.Claimer, faults *Faults) core.Claimer {
	if s, ok := c.(core.Store); ok {
		return FaultyStore(s, faults)
	}
	x := &faultyClaimer{inner: c, f: faults}
	if clock, ok := c.(core.TimeSource); ok && !faults.opt.HideTimeSource {
		return struct {
			*faultyClaimer
			core.TimeSource
		}{x, faultyClock{faults, clock}}
	}
	return x
}

// FaultyStore is FaultyClaimer for a core.Store.
func FaultyStore(s core.Store, faults *Faults) core.Store {
	x := &faultyStore{faultyClaimer: &faultyClaimer{inner: s, f: faults}, inner: s}
	clock, tells := s.(core.TimeSource)
	purger, purges := s.(core.Purger)
	tells, purges = tells && !faults.opt.HideTimeSource, purges && !faults.opt.HidePurger
	c, p := faultyClock{faults, clock}, faultyPurger{faults, purger}
	switch {
	case tells && purges:
		return struct {
			*faultyStore
			core.TimeSource
			core.Purger
		}{x, c, p}
	case tells:
		return struct {
			*faultyStore
			core.TimeSource
		}{x, c}
	case purges:
		return struct {
			*faultyStore
			core.Purger
		}{x, p}
	default:
		return x
	}
}

type faultyClaimer struct {
	inner core.Claimer
	f     *Faults
}

// Undated implements core.Undated, for a claimer that has it; without it the
// answer is the one that its absence has.
func (x *faultyClaimer) Undated() bool {
	u, ok := x.inner.(core.Undated)
	return ok && u.Undated()
}

// CheckID implements core.IDChecker, for a claimer that has it; without it every
// id will do. It asks no backend, which could fail.
func (x *faultyClaimer) CheckID(id core.ID) error {
	if c, ok := x.inner.(core.IDChecker); ok {
		return c.CheckID(id)
	}
	return nil
}

func (x *faultyClaimer) Claim(ctx context.Context, ids []core.ID, lease core.Lease) (got []core.Claimed, err error) {
	err = x.f.call(ctx, func() (err error) { got, err = x.inner.Claim(ctx, ids, lease); return err })
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (x *faultyClaimer) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return x.f.call(ctx, func() error { return x.inner.Extend(ctx, grants, until) })
}

func (x *faultyClaimer) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return x.f.call(ctx, func() error { return x.inner.Settle(ctx, now, settlements) })
}

func (x *faultyClaimer) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) (rows []core.Entry, err error) {
	err = x.f.call(ctx, func() (err error) { rows, err = x.inner.Waiting(ctx, now, after, before, limit); return err })
	if err != nil {
		return nil, err
	}
	return rows, nil
}

type faultyStore struct {
	*faultyClaimer
	inner core.Store
}

func (x *faultyStore) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return x.f.call(ctx, func() error { return x.inner.Insert(ctx, call, tasks) })
}

// Cancel has fates to return beside a *core.BatchError too.
func (x *faultyStore) Cancel(ctx context.Context, call core.Call, ids []core.ID) (fates []core.Fate, err error) {
	injected := x.f.call(ctx, func() error {
		fates, err = x.inner.Cancel(ctx, call, ids)
		return nil
	})
	if injected != nil {
		return nil, injected
	}
	return fates, err
}

func (x *faultyStore) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	return x.f.call(ctx, func() error { return x.inner.Reschedule(ctx, call, moves) })
}

type faultyClock struct {
	f     *Faults
	inner core.TimeSource
}

func (c faultyClock) Now(ctx context.Context) (now time.Time, err error) {
	err = c.f.call(ctx, func() (err error) { now, err = c.inner.Now(ctx); return err })
	if err != nil {
		return time.Time{}, err
	}
	return now, nil
}

type faultyPurger struct {
	f     *Faults
	inner core.Purger
}

func (p faultyPurger) Purge(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = p.f.call(ctx, func() (err error) { n, err = p.inner.Purge(ctx, before, limit); return err })
	if err != nil {
		return 0, err
	}
	return n, nil
}

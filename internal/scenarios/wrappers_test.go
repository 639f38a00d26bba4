package scenarios

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// hooked is a store with functions of the test's own around its calls. A nil one
// does nothing; one that returns an error makes the call fail with it.
type hooked struct {
	core.Store
	core.TimeSource
	beforeClaim  func(ctx context.Context, ids []core.ID, lease core.Lease) error
	afterClaim   func(claimed []core.Claimed) error
	beforeExtend func(ctx context.Context, grants []core.Grant) error
	beforeSettle func(ctx context.Context, settlements []core.Settlement) error
	afterSettle  func(settlements []core.Settlement) error
	beforeAny    func(ctx context.Context) error
	afterInsert  func() error
	afterCancel  func() error
}

// hook returns a pair's store, without hooks yet.
func hook(p *fleet.Parts) *hooked { return &hooked{Store: p.Store, TimeSource: p.Clock} }

func (h *hooked) any(ctx context.Context) error {
	if h.beforeAny == nil {
		return nil
	}
	return h.beforeAny(ctx)
}

func (h *hooked) Now(ctx context.Context) (time.Time, error) {
	if err := h.any(ctx); err != nil {
		return time.Time{}, err
	}
	return h.TimeSource.Now(ctx)
}

func (h *hooked) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if err := h.any(ctx); err != nil {
		return nil, err
	}
	if h.beforeClaim != nil {
		if err := h.beforeClaim(ctx, ids, lease); err != nil {
			return nil, err
		}
	}
	claimed, err := h.Store.Claim(ctx, ids, lease)
	if err == nil && h.afterClaim != nil {
		err = h.afterClaim(claimed)
	}
	return claimed, err
}

func (h *hooked) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if err := h.any(ctx); err != nil {
		return err
	}
	if h.beforeExtend != nil {
		if err := h.beforeExtend(ctx, grants); err != nil {
			return err
		}
	}
	return h.Store.Extend(ctx, grants, until)
}

func (h *hooked) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	if err := h.any(ctx); err != nil {
		return err
	}
	if h.beforeSettle != nil {
		if err := h.beforeSettle(ctx, settlements); err != nil {
			return err
		}
	}
	err := h.Store.Settle(ctx, now, settlements)
	if h.afterSettle != nil && err == nil {
		err = h.afterSettle(settlements)
	}
	return err
}

func (h *hooked) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := h.any(ctx); err != nil {
		return nil, err
	}
	return h.Store.Waiting(ctx, now, after, before, limit)
}

func (h *hooked) Insert(ctx context.Context, call core.Call, list []core.Task) error {
	err := h.Store.Insert(ctx, call, list)
	if err == nil && h.afterInsert != nil {
		err = h.afterInsert()
	}
	return err
}

func (h *hooked) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	fates, err := h.Store.Cancel(ctx, call, ids)
	if err == nil && h.afterCancel != nil {
		err = h.afterCancel()
	}
	return fates, err
}

// slowIndex takes a while for each call, as a far one does, and hides whether it
// is a Taker: schedulers that look at the same time see the same head.
type slowIndex struct {
	core.TimeIndex
	latency time.Duration
}

func (x slowIndex) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	time.Sleep(x.latency)
	return x.TimeIndex.Due(ctx, now, limit)
}

func (x slowIndex) Move(ctx context.Context, moves []core.Move) error {
	time.Sleep(x.latency)
	return x.TimeIndex.Move(ctx, moves)
}

// noIndex knows of nothing and keeps nothing.
type noIndex struct{}

func (noIndex) Add(context.Context, []core.Entry) error { return nil }
func (noIndex) Due(context.Context, time.Time, int) ([]core.Entry, error) {
	return nil, nil
}
func (noIndex) Move(context.Context, []core.Move) error    { return nil }
func (noIndex) Remove(context.Context, []core.Entry) error { return nil }

package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// smallPool is a store behind a pool of connections, each of which serves a call for a
// second.
type smallPool struct {
	core.Store
	free chan struct{}
}

func (s *smallPool) use(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
	case <-ctx.Done():
		return core.ErrNoConnection
	}
	time.Sleep(time.Second)
	<-s.free
	return nil
}

func (s *smallPool) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if err := s.use(ctx); err != nil {
		return nil, err
	}
	return s.Store.Claim(context.WithoutCancel(ctx), ids, lease)
}

func (s *smallPool) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if err := s.use(ctx); err != nil {
		return err
	}
	return s.Store.Extend(context.WithoutCancel(ctx), grants, until)
}

func (s *smallPool) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	if err := s.use(ctx); err != nil {
		return err
	}
	return s.Store.Settle(context.WithoutCancel(ctx), now, list)
}

func (s *smallPool) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := s.use(ctx); err != nil {
		return nil, err
	}
	return s.Store.Waiting(context.WithoutCancel(ctx), now, after, before, limit)
}

func TestNoLeaseIsLostWhereConnectionsAreFewAndSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &smallPool{Store: p.store, free: make(chan struct{}, 1)}
		lost := 0
		work := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		opt := core.Options{Slots: 2000, Observer: core.Observer{LeaseLost: func(*core.Job, error) { lost++ }}}
		scheduler := newScheduler(t, p.idx, store, work, opt)
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- scheduler.Run(ctx) }()
		for i := range 600 { // some each tenth of a second, so that there always is something to claim
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}))
			time.Sleep(100 * time.Millisecond)
		}
		assert.NoError(t, scheduler.Health().Ready())
		require.NoError(t, <-ended)
		assert.Zero(t, lost, "leases lost in a minute")
	})
}

package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// mutePool is a store behind a pool of one connection, which the newest caller gets first
// (database/sql chooses by chance). While silent is set the server's replies are lost,
// but for heartbeats', so that each call holds its connection until its ctx ends.
type mutePool struct {
	core.Store
	silent atomic.Bool

	mu      sync.Mutex
	busy    bool
	waiting []chan struct{}
}

func (s *mutePool) get(ctx context.Context) bool {
	s.mu.Lock()
	if !s.busy {
		s.busy = true
		s.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, mine)
	if i < 0 { // it was given the connection at that moment
		return true
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return false
}

func (s *mutePool) put() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.waiting); n > 0 {
		close(s.waiting[n-1])
		s.waiting = s.waiting[:n-1]
		return
	}
	s.busy = false
}

func (s *mutePool) use(ctx context.Context, beat bool, call func() error) error {
	if !s.get(ctx) {
		return fmt.Errorf("%w: %w", core.ErrNoConnection, ctx.Err())
	}
	defer s.put()
	if s.silent.Load() && !beat {
		<-ctx.Done()
		return ctx.Err()
	}
	return call()
}

func (s *mutePool) Claim(ctx context.Context, ids []core.ID, lease core.Lease) (got []core.Claimed, err error) {
	err = s.use(ctx, false, func() (err error) { got, err = s.Store.Claim(ctx, ids, lease); return err })
	return got, err
}

func (s *mutePool) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	return s.use(ctx, false, func() error { return s.Store.Settle(ctx, now, list) })
}

func (s *mutePool) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) (rows []core.Entry, err error) {
	err = s.use(ctx, false, func() (err error) { rows, err = s.Store.Waiting(ctx, now, after, before, limit); return err })
	return rows, err
}

func (s *mutePool) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return s.use(ctx, true, func() error { return s.Store.Extend(ctx, grants, until) })
}

func TestHeartbeatsComeFirstWhereConnectionsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &mutePool{Store: p.store}
		var lost atomic.Int64
		h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			if job.Task.ID[0] != '0' {
				return nil
			}
			select {
			case <-time.After(10 * time.Minute):
			case <-ctx.Done():
				lost.Add(1)
			}
			return nil
		})
		stop := running(t, newScheduler(t, p.idx, store, h, core.Options{Lease: 20 * time.Second}))
		p.schedule(t, 1, time.Now())
		time.Sleep(time.Second)
		store.silent.Store(true)
		for i := range 60 {
			require.NoError(t, p.prod.Schedule(t.Context(), due(fmt.Sprint("more", i))))
			time.Sleep(5 * time.Second)
		}
		store.silent.Store(false)
		assert.Zero(t, lost.Load(), "leases that were lost for want of a connection")
		time.Sleep(6 * time.Minute)
		require.NoError(t, stop())
		row, _ := p.store.Task("0")
		assert.Zero(t, row.Crashes)
	})
}

// starving is a store whose heartbeats get no connection while starved is set.
type starving struct {
	core.Store
	starved atomic.Bool
}

func (s *starving) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if s.starved.Load() {
		time.Sleep(2 * time.Second)
		return core.ErrNoConnection
	}
	return s.Store.Extend(ctx, grants, until)
}

func TestNothingGivesWayToHeartbeatsThatHaveNothingToExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &starving{Store: p.store}
		store.starved.Store(true)
		late := make(chan time.Duration, 2)
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			late <- job.Lateness()
			if job.Task.ID == "0" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		running(t, newScheduler(t, p.idx, store, h, core.Options{Lease: 30 * time.Second}))
		time.Sleep(500 * time.Millisecond)
		p.schedule(t, 1, time.Now()) // its heartbeat waits when its result has gone out
		time.Sleep(30 * time.Second)
		require.NoError(t, p.prod.Schedule(t.Context(), due("later")))
		time.Sleep(30 * time.Second)
		<-late
		assert.Less(t, <-late, time.Second)
	})
}

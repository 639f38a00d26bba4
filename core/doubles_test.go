package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

var errAway = errors.New("away")

// hookedStore passes each call through a hook that may fail it before, or after
// it took effect.
type hookedStore struct {
	core.Store
	mu   sync.Mutex
	hook func(op string, call func() error) error // nil: straight through
	n    map[string]int
}

func (s *hookedStore) set(hook func(op string, call func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

func (s *hookedStore) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[op]
}

func (s *hookedStore) via(op string, call func() error) error {
	s.mu.Lock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	s.n[op]++
	hook := s.hook
	s.mu.Unlock()
	if hook == nil {
		return call()
	}
	return hook(op, call)
}

func (s *hookedStore) Claim(ctx context.Context, ids []core.ID, lease core.Lease) (got []core.Claimed, err error) {
	err = s.via("claim", func() (err error) { got, err = s.Store.Claim(ctx, ids, lease); return err })
	return got, err
}

func (s *hookedStore) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return s.via("extend", func() error { return s.Store.Extend(ctx, grants, until) })
}

func (s *hookedStore) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	return s.via("settle", func() error { return s.Store.Settle(ctx, now, list) })
}

func (s *hookedStore) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return s.via("insert", func() error { return s.Store.Insert(ctx, call, tasks) })
}

func (s *hookedStore) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) (rows []core.Entry, err error) {
	err = s.via("waiting", func() (err error) { rows, err = s.Store.Waiting(ctx, now, after, before, limit); return err })
	return rows, err
}

// failing fails one operation, without effect.
func failing(ops ...string) func(string, func() error) error {
	return func(op string, call func() error) error {
		for _, o := range ops {
			if o == op {
				return errAway
			}
		}
		return call()
	}
}

// lossyIndex is an index that can be away, or swallow what it is told.
type lossyIndex struct {
	core.TimeIndex
	away    atomic.Bool
	swallow atomic.Bool
	takes   atomic.Int64
}

func (x *lossyIndex) Add(ctx context.Context, entries []core.Entry) error {
	switch {
	case x.away.Load():
		return errAway
	case x.swallow.Load():
		return nil
	}
	return x.TimeIndex.Add(ctx, entries)
}

func (x *lossyIndex) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	x.takes.Add(1)
	if x.away.Load() {
		return nil, errAway
	}
	return x.TimeIndex.Due(ctx, now, limit)
}

func (x *lossyIndex) Move(ctx context.Context, moves []core.Move) error {
	if x.away.Load() {
		return errAway
	}
	return x.TimeIndex.Move(ctx, moves)
}

func (x *lossyIndex) Remove(ctx context.Context, entries []core.Entry) error {
	if x.away.Load() {
		return errAway
	}
	return x.TimeIndex.Remove(ctx, entries)
}

// lossyRestorer is a lossyIndex that is a core.Restorer and a core.Taker.
type lossyRestorer struct{ *lossyIndex }

func (x lossyRestorer) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	x.takes.Add(1)
	if x.away.Load() {
		return nil, time.Time{}, errAway
	}
	return x.TimeIndex.(core.Taker).Take(ctx, now, until, limit)
}

func (x lossyRestorer) AddMissing(ctx context.Context, entries []core.Entry) error {
	switch {
	case x.away.Load():
		return errAway
	case x.swallow.Load():
		return nil
	}
	return x.TimeIndex.(core.Restorer).AddMissing(ctx, entries)
}

// skewedStore is a store whose own clock is off by a settable time.
type skewedStore struct {
	core.Store
	skew atomic.Int64
}

func (s *skewedStore) Now(context.Context) (time.Time, error) {
	return time.Now().Add(time.Duration(s.skew.Load())), nil
}

// Claim has the store inside judge By by this clock and not by the process's.
func (s *skewedStore) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if !lease.By.IsZero() {
		lease.By = lease.By.Add(-time.Duration(s.skew.Load()))
	}
	return s.Store.Claim(ctx, ids, lease)
}

// recorder counts runs by id.
type recorder struct {
	mu   sync.Mutex
	runs map[core.ID]int
}

func (r *recorder) Handle(_ context.Context, job *core.Job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[core.ID]int{}
	}
	r.runs[job.Task.ID]++
	return nil
}

func (r *recorder) get(id core.ID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[id]
}

func (r *recorder) total() (ids, runs int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.runs {
		runs += n
	}
	return len(r.runs), runs
}

func newScheduler(t *testing.T, idx core.TimeIndex, store core.Claimer, h core.Handler, opt core.Options) *core.Scheduler {
	t.Helper()
	if opt.Logger == nil {
		opt.Logger = quiet()
	}
	s, err := core.New(idx, store, h, opt)
	require.NoError(t, err)
	return s
}

package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// nothing is the result of a call that has none.
type nothing struct{}

// gatedStore is the store as one process sees it.
type gatedStore struct {
	g     *gate
	inner core.Store

	mu    sync.Mutex
	asked map[string]string // the holder of each claim of unknown outcome, by what else it said
}

func (s *gatedStore) do(ctx context.Context, op string, effect func(context.Context) error) error {
	_, err := through(ctx, s.g, toStore, op, func(ctx context.Context) (nothing, error) { return nothing{}, effect(ctx) })
	return err
}

func (s *gatedStore) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	ids = slices.Clone(ids)
	got, err := through(ctx, s.g, toStore, "claim", func(ctx context.Context) ([]core.Claimed, error) { return s.inner.Claim(ctx, ids, lease) })
	s.sameHolder(ids, lease, err)
	return got, err
}

// sameHolder judges a repeat: under another holder than the first try's it would not
// find what that one was granted.
func (s *gatedStore) sameHolder(ids []core.ID, lease core.Lease, err error) {
	call := fmt.Sprint(ids, lease.Now.UnixMilli(), lease.DueBy.UnixMilli(), lease.Until.UnixMilli())
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, again := s.asked[call]; again && first != lease.Holder {
		s.g.w.fail(ids[0], "the claim of %s was repeated as %s", first, lease.Holder)
	}
	if delete(s.asked, call); err != nil {
		s.asked[call] = lease.Holder
	}
}

func (s *gatedStore) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	grants = slices.Clone(grants)
	return s.do(ctx, "extend", func(ctx context.Context) error { return s.inner.Extend(ctx, grants, until) })
}

func (s *gatedStore) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	list = slices.Clone(list)
	return s.do(ctx, "settle", func(ctx context.Context) error { return s.inner.Settle(ctx, now, list) })
}

func (s *gatedStore) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	return through(ctx, s.g, toStore, "waiting", func(ctx context.Context) ([]core.Entry, error) {
		return s.inner.Waiting(ctx, now, after, before, limit)
	})
}

func (s *gatedStore) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	tasks = slices.Clone(tasks)
	return s.do(ctx, "insert", func(ctx context.Context) error { return s.inner.Insert(ctx, call, tasks) })
}

func (s *gatedStore) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	ids = slices.Clone(ids)
	return through(ctx, s.g, toStore, "cancel", func(ctx context.Context) ([]core.Fate, error) { return s.inner.Cancel(ctx, call, ids) })
}

func (s *gatedStore) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	moves = slices.Clone(moves)
	return s.do(ctx, "reschedule", func(ctx context.Context) error { return s.inner.Reschedule(ctx, call, moves) })
}

// clockedStore is a gatedStore that tells the time.
type clockedStore struct {
	*gatedStore
	clock core.TimeSource
}

func (s clockedStore) Now(ctx context.Context) (time.Time, error) {
	return through(ctx, s.g, toStore, "now", s.clock.Now)
}

// gatedIndex is the index as one process sees it.
type gatedIndex struct {
	g       *gate
	inner   core.TimeIndex
	watcher core.Watcher // nil: it has none
}

func (x *gatedIndex) do(ctx context.Context, op string, effect func(context.Context) error) error {
	_, err := through(ctx, x.g, toIndex, op, func(ctx context.Context) (nothing, error) { return nothing{}, effect(ctx) })
	return err
}

func (x *gatedIndex) Add(ctx context.Context, entries []core.Entry) error {
	entries = slices.Clone(entries)
	return x.do(ctx, "add", func(ctx context.Context) error { return x.inner.Add(ctx, entries) })
}

func (x *gatedIndex) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	return through(ctx, x.g, toIndex, "due", func(ctx context.Context) ([]core.Entry, error) { return x.inner.Due(ctx, now, limit) })
}

func (x *gatedIndex) Move(ctx context.Context, moves []core.Move) error {
	moves = slices.Clone(moves)
	return x.do(ctx, "move", func(ctx context.Context) error { return x.inner.Move(ctx, moves) })
}

func (x *gatedIndex) Remove(ctx context.Context, entries []core.Entry) error {
	entries = slices.Clone(entries)
	return x.do(ctx, "remove", func(ctx context.Context) error { return x.inner.Remove(ctx, entries) })
}

// List lists nothing where the index behind can't.
func (x *gatedIndex) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	l, ok := x.inner.(core.Lister)
	if !ok {
		return nil, nil
	}
	return through(ctx, x.g, toIndex, "list", func(ctx context.Context) ([]core.Entry, error) { return l.List(ctx, after, before, limit) })
}

// Generation has no name where the index behind can't tell.
func (x *gatedIndex) Generation(ctx context.Context) (string, error) {
	d, ok := x.inner.(core.Detector)
	if !ok {
		return "", nil
	}
	return through(ctx, x.g, toIndex, "generation", d.Generation)
}

// Watch fails when the process is cut off; where the index has no Watcher it only
// waits, which is what a scheduler does without one.
func (x *gatedIndex) Watch(ctx context.Context, notify func()) error {
	if x.watcher == nil {
		<-ctx.Done()
		return nil
	}
	if _, err := through(ctx, x.g, toIndex, "watch", func(context.Context) (nothing, error) { return nothing{}, nil }); err != nil {
		return err
	}
	return x.watcher.Watch(ctx, notify)
}

// takingIndex is a gatedIndex that takes in one step.
type takingIndex struct {
	*gatedIndex
	taker core.Taker
}

type took struct {
	ids  []core.ID
	next time.Time
}

func (x takingIndex) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	got, err := through(ctx, x.g, toIndex, "take", func(ctx context.Context) (took, error) {
		ids, next, err := x.taker.Take(ctx, now, until, limit)
		return took{ids, next}, err
	})
	return got.ids, got.next, err
}

// parts returns the index and the store of a process: behind its gate the faults of
// package conformance, behind those what all share.
func (w *world) parts(g *gate) (core.TimeIndex, core.Store) {
	idx := conformanceIndex(w)
	gated := &gatedIndex{g: g, inner: idx}
	gated.watcher, _ = idx.(core.Watcher)
	var index core.TimeIndex = gated
	if taker, ok := idx.(core.Taker); ok {
		index = takingIndex{gated, taker}
	}
	inner := conformanceStore(w)
	store := &gatedStore{g: g, inner: inner, asked: map[string]string{}}
	if clock, ok := inner.(core.TimeSource); ok {
		return index, clockedStore{store, clock}
	}
	return index, store
}

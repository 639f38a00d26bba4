package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// FaultyIndex returns idx behind faults. It has the optional capabilities of
// idx, but for hidden ones. With only losing and doubling of entries, delays,
// repeats and lost replies it is a bad index, yet one that a scheduler must cope
// with.
func FaultyIndex(idx core.TimeIndex, faults *Faults) core.TimeIndex {
	x := &faultyIndex{inner: idx, f: faults}
	if d, ok := idx.(core.Detector); ok && !faults.opt.HideDetector {
		x.detector = d
	}
	taker, takes := idx.(core.Taker)
	watcher, watches := idx.(core.Watcher)
	restorer, restores := idx.(core.Restorer)
	takes, watches, restores = takes && !faults.opt.HideTaker, watches && !faults.opt.HideWatcher, restores && !faults.opt.HideRestorer
	t, w, r := faultyTaker{x, taker}, faultyWatcher{faults, watcher}, faultyRestorer{faults, restorer}
	if l, ok := idx.(core.Lister); ok && !faults.opt.HideLister {
		x.lister = l
	}
	b := faultyBase{x, x, x}
	switch {
	case takes && watches && restores:
		return struct {
			faultyBase
			core.Taker
			core.Watcher
			core.Restorer
		}{b, t, w, r}
	case takes && watches:
		return struct {
			faultyBase
			core.Taker
			core.Watcher
		}{b, t, w}
	case takes && restores:
		return struct {
			faultyBase
			core.Taker
			core.Restorer
		}{b, t, r}
	case watches && restores:
		return struct {
			faultyBase
			core.Watcher
			core.Restorer
		}{b, w, r}
	case takes:
		return struct {
			faultyBase
			core.Taker
		}{b, t}
	case watches:
		return struct {
			faultyBase
			core.Watcher
		}{b, w}
	case restores:
		return struct {
			faultyBase
			core.Restorer
		}{b, r}
	default:
		return x
	}
}

// faultyBase is what all combinations have.
type faultyBase struct {
	core.TimeIndex
	core.Detector
	core.Lister
}

type faultyIndex struct {
	inner    core.TimeIndex
	f        *Faults
	detector core.Detector // nil: it has none, or hides it
	lister   core.Lister   // the same
}

// Generation implements core.Detector. It has no name where there is none behind.
func (x *faultyIndex) Generation(ctx context.Context) (name string, err error) {
	if x.detector == nil {
		return "", ctx.Err()
	}
	err = x.f.call(ctx, func() (err error) { name, err = x.detector.Generation(ctx); return err })
	if errors.Is(err, ErrInjected) {
		return "", err
	}
	return name, err
}

// List implements core.Lister. It lists nothing where there is none behind.
func (x *faultyIndex) List(ctx context.Context, after core.Entry, before time.Time, limit int) (entries []core.Entry, err error) {
	if x.lister == nil {
		return nil, ctx.Err()
	}
	err = x.f.call(ctx, func() (err error) { entries, err = x.lister.List(ctx, after, before, limit); return err })
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func (x *faultyIndex) Add(ctx context.Context, entries []core.Entry) error {
	return x.f.call(ctx, func() error { return x.inner.Add(ctx, spare(x.f, entries)) })
}

func (x *faultyIndex) Due(ctx context.Context, now time.Time, limit int) (due []core.Entry, err error) {
	err = x.f.call(ctx, func() (err error) { due, err = x.inner.Due(ctx, now, limit); return err })
	if err != nil {
		return nil, err
	}
	return due, nil
}

func (x *faultyIndex) Move(ctx context.Context, moves []core.Move) error {
	return x.f.call(ctx, func() error { return x.inner.Move(ctx, moves) })
}

func (x *faultyIndex) Remove(ctx context.Context, entries []core.Entry) error {
	return x.f.call(ctx, func() error { return x.inner.Remove(ctx, single(x.f, entries)) })
}

type faultyTaker struct {
	x     *faultyIndex
	inner core.Taker
}

func (t faultyTaker) Take(ctx context.Context, now, until time.Time, limit int) (taken []core.ID, next time.Time, err error) {
	err = t.x.f.call(ctx, func() (err error) {
		taken, next, err = t.inner.Take(ctx, now, until, limit)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	var again []core.Entry
	for _, id := range taken {
		if t.x.f.strikes(FaultDoubleEntry, t.x.f.opt.DoubleEntry) {
			again = append(again, core.Entry{ID: id, Due: now})
		}
	}
	if len(again) > 0 {
		_ = t.x.inner.Add(ctx, again) // then it isn't doubled
	}
	return spare(t.x.f, taken), next, nil
}

type faultyWatcher struct {
	f     *Faults
	inner core.Watcher
}

func (w faultyWatcher) Watch(ctx context.Context, notify func()) error {
	if w.f.strikes(FaultFail, w.f.opt.Fail) {
		return ErrInjected
	}
	return w.inner.Watch(ctx, func() {
		if !w.f.strikes(FaultLoseEntry, w.f.opt.LoseEntry) {
			notify()
		}
	})
}

type faultyRestorer struct {
	f     *Faults
	inner core.Restorer
}

func (r faultyRestorer) AddMissing(ctx context.Context, entries []core.Entry) error {
	return r.f.call(ctx, func() error { return r.inner.AddMissing(ctx, spare(r.f, entries)) })
}

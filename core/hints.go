package core

import (
	"context"
	"maps"
	"slices"
	"time"
)

// addToIndex puts entries that are within the horizon into the index. It uses up
// the slice.
func (e *engine) addToIndex(entries []Entry) {
	if e.opt.Horizon > 0 {
		entries = within(entries, e.clock.now().Add(e.opt.Horizon))
	}
	e.putInIndex(entries)
}

// putInIndex puts entries into the index.
func (e *engine) putInIndex(entries []Entry) {
	e.writeToIndex("add", entries, e.idx.Add)
}

// writeToIndex calls a method of the index that puts entries into it.
func (e *engine) writeToIndex(op string, entries []Entry, write func(context.Context, []Entry) error) {
	if len(entries) == 0 {
		return
	}
	again := write
	if r, ok := e.idx.(Restorer); ok { // late, an Add would bring back what others took meanwhile
		again = r.AddMissing
	}
	if err := toIndex(e, op, entries, write, again); err != nil {
		e.obs.notIndexed(len(entries), err)
		return
	}
	earliest := slices.MinFunc(entries, func(a, b Entry) int { return a.Due.Compare(b.Due) })
	e.wakeBefore(earliest.Due)
}

// wakeBefore wakes dispatch when it would sleep past t.
func (e *engine) wakeBefore(t time.Time) {
	e.mu.Lock()
	sooner := t.Before(e.wakeAt)
	e.mu.Unlock()
	if sooner {
		poke(e.head)
	}
}

// moveInIndex moves entries; a failure costs time only.
func (e *engine) moveInIndex(moves []Move) {
	if len(moves) == 0 {
		return
	}
	if toIndex(e, "move", moves, e.idx.Move, e.idx.Move) != nil {
		return // observed there
	}
	earliest := slices.MinFunc(moves, func(a, b Move) int { return a.To.Compare(b.To) })
	e.wakeBefore(earliest.To)
}

// removeFromIndex removes entries; a failure costs a claim each, later.
func (e *engine) removeFromIndex(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	_ = toIndex(e, "remove", entries, e.idx.Remove, e.idx.Remove) // observed there
}

// toIndex makes one try at a write to the index, which is only a hint: after a
// failure it is left alone for a second, so that results don't wait for it. again is
// what retryUnwritten is to call then.
func toIndex[T any](e *engine, op string, items []T, write, again func(context.Context, []T) error) error {
	e.mu.Lock()
	away := e.clock.mono() < e.idxPause
	e.mu.Unlock()
	if away {
		return errIndexAway
	}
	err := e.index.once(e.base, func(ctx context.Context) error { return write(ctx, items) })
	e.health.index(op, err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		delete(e.unwritten, op)
		return nil
	}
	e.idxPause = e.clock.mono() + time.Second
	one := []T{items[0]}
	e.unwritten[op] = func(ctx context.Context) error { return again(ctx, one) }
	return err
}

// retryUnwritten makes a write again that failed, by its first item, now that takes
// succeed: nobody may have another one to make for long, and health goes by each kind of
// call. The contract makes every repeat harmless.
func (e *engine) retryUnwritten() {
	e.mu.Lock()
	all := maps.Clone(e.unwritten)
	if e.clock.mono() < max(e.idxPause, e.rewrite) {
		all = nil
	}
	e.mu.Unlock()
	for op, write := range all {
		err := e.index.once(e.base, write)
		e.health.index(op, err)
		e.mu.Lock()
		if err != nil {
			e.rewrite = e.clock.mono() + time.Second
			e.mu.Unlock()
			return
		}
		delete(e.unwritten, op)
		e.mu.Unlock()
	}
}

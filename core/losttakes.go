package core

import (
	"context"
	"time"
)

// lostTake is a take that failed. It may have moved ids all the same: they stand at the
// end of a lease that nobody has.
type lostTake struct {
	until  time.Time
	ids    int           // at most
	giveUp time.Duration // on the monotonic clock: from then on they are left to the sweeps
}

// noteLost notes a take that failed. An index that can't list leaves what it took to
// the sweeps.
func (e *engine) noteLost(b takenBatch, n int) {
	if _, ok := e.idx.(Lister); !ok {
		return
	}
	if len(e.lostTakes) >= 100 { // it was away for long, and the first of them was the likeliest
		return
	}
	e.lostTakes = append(e.lostTakes, lostTake{until: b.standing, ids: n, giveUp: e.clock.mono() + e.heartbeat()})
}

// findLost asks the index, which works again, for what failed takes have moved. It goes
// by the very millisecond to which they moved it; what else stands there, the store has
// a verdict about.
func (e *engine) findLost() {
	for len(e.lostTakes) > 0 && len(e.found.ids) == 0 {
		lost := e.lostTakes[0]
		if e.clock.mono() < lost.giveUp {
			ids, err := e.standingAt(lost.until, lost.ids+maxBatch)
			if err != nil {
				return // with the next take that succeeds
			}
			e.found = takenBatch{ids: ids, standing: lost.until}
		}
		e.lostTakes = e.lostTakes[1:]
	}
}

// dropFound forgets what was found and is still not claimed, for want of slots, when it
// may come due in the index before the first heartbeat would have moved it: others take
// it there.
func (e *engine) dropFound() {
	if len(e.found.ids) > 0 && e.clock.until(e.found.standing) < e.opt.Lease/2 {
		e.found = takenBatch{}
	}
}

// ownMilli returns the first instant from t on whose millisecond of the second is this
// process's own, so that what its takes moved there is told from what others' did: of
// an undated store's rows, one that is in hand looks like one that isn't.
func (e *engine) ownMilli(t time.Time) time.Time {
	return t.Add((e.milli + time.Second - t.Sub(t.Truncate(time.Second))) % time.Second)
}

// standingAt returns ids that stand at exactly t, but those that this process has in
// hand or that back off.
func (e *engine) standingAt(t time.Time, limit int) (ids []ID, err error) {
	var entries []Entry
	err = e.index.once(e.base, func(ctx context.Context) (err error) {
		entries, err = e.idx.(Lister).List(ctx, Entry{Due: t}, t.Add(time.Millisecond), limit)
		return err
	})
	if err != nil {
		e.tellFailed("index: list", err) // a user of the index may lack the right: that is no bad health
		return nil, err
	}
	now := e.clock.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, entry := range entries {
		if _, ok := e.hand[entry.ID]; ok || e.rests[entry.ID].After(now) {
			continue
		}
		ids = append(ids, entry.ID)
	}
	return ids, nil
}

// takeFound takes up to n of what was found.
func (e *engine) takeFound(n int) takenBatch {
	b := e.newBatch()
	b.standing = e.found.standing
	n = min(n, len(e.found.ids))
	b.ids = e.found.ids[:n:n]
	e.found.ids = e.found.ids[n:]
	return b
}

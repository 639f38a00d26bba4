package sqliteclaim

import (
	"context"
	"time"
)

// A file has one writer, and SQLite has no queue for those that wait for its lock: each
// looks again and again, soon every 100 ms only, until its busy_timeout is over. A writer
// that goes from one transaction to the next leaves the lock free for 2 or 3 percent of
// the time, so that another one, with the usual 5 s, fails half of the time.
//
// So one that hardly rests leaves a gap that such a look can't miss, once in less than
// those 5 s. When it is time for one is by the host's clock, which makes it the same for
// all stores of all processes: a gap that one alone left would be filled by the others.
const (
	gapEvery  = 4500 * time.Millisecond
	gapLength = 110 * time.Millisecond
)

// gaps is what a writer knows of them. Only the leader touches it.
type gaps struct {
	n      int64     // the gap that was judged last, by its number
	end    time.Time // of that one; past where it isn't needed
	since  time.Time
	worked time.Duration // since then; waiting for the lock is work, as it isn't free
}

// left returns how long the writer has to wait for the end of a gap; 0: not at all. One
// that rests for a quarter of the time leaves chance enough without.
func (g *gaps) left(now time.Time) time.Duration {
	if n := now.UnixNano() / int64(gapEvery); n != g.n {
		if 4*g.worked > 3*now.Sub(g.since) {
			g.end = now.Add(gapLength) // from here, as the last transaction is over
		}
		g.n, g.since, g.worked = n, now, 0
	}
	return max(0, g.end.Sub(now))
}

// leaveGap waits for the end of a gap.
func (w *writer) leaveGap(ctx context.Context) error {
	d := w.gaps.left(time.Now())
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package index

import (
	"context"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// lastDue is the last due time there is.
var lastDue = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)

// Watch implements [core.Watcher]: it passes on the wake-ups of both parts and
// looks after the primary. It returns when ctx is done, with nil.
func (f *failover) Watch(ctx context.Context, notify func()) error {
	f.watches.Add(1)
	defer f.watches.Add(-1)
	var all sync.WaitGroup
	defer all.Wait()
	for _, x := range []core.TimeIndex{f.primary, f.backup} {
		if w, ok := x.(core.Watcher); ok {
			all.Go(func() { f.watch(ctx, w, notify) })
		}
	}
	timer := time.NewTicker(leastWait / 2)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.suspect:
			f.ask(ctx)
		case <-timer.C:
		}
		if f.tryReturn(ctx) {
			notify()
		}
	}
}

// watch watches one part, again where it can't go on. That may be the first sign
// of a primary that is gone.
func (f *failover) watch(ctx context.Context, w core.Watcher, notify func()) {
	for ctx.Err() == nil {
		if err := w.Watch(ctx, notify); err == nil || ctx.Err() != nil {
			return
		}
		select {
		case f.suspect <- struct{}{}:
		default:
		}
		pause := time.NewTimer(leastWait)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// ask asks a primary that seems well whether it is.
func (f *failover) ask(ctx context.Context) {
	f.mu.Lock()
	away, turn := f.away, f.switches
	f.mu.Unlock()
	if away {
		return
	}
	if err := f.ping(ctx); isFailure(ctx, err) {
		f.fail(turn, err)
	}
}

// ping makes a call that reads nothing.
func (f *failover) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := f.primary.Due(ctx, time.Unix(0, 0).UTC(), 1)
	return err
}

// tryReturn goes back to the primary when it is time to try and it answers, and
// brings it what is in the backup. It tells whether it did.
func (f *failover) tryReturn(ctx context.Context) bool {
	f.mu.Lock()
	away, leftover, turn := f.away, f.leftover, f.switches
	try := away && f.timeForTry()
	f.mu.Unlock()
	if away && !try || !away && !leftover {
		return false
	}
	if away {
		if err := f.ping(ctx); err != nil {
			if isFailure(ctx, err) {
				f.fail(turn, err)
			}
			return false
		}
	}
	return f.bringBack(ctx, 0)
}

// bringBack brings entries of the backup to the primary, soonest first, and makes
// the primary the one at work once it has taken the first of them: one that can
// only be read doesn't. pages says how many pages at most, 0 all.
func (f *failover) bringBack(ctx context.Context, pages int) bool {
	if !f.returning.TryLock() {
		return false // somebody does
	}
	defer f.returning.Unlock()
	for n := 1; ; n++ {
		f.mu.Lock()
		turn := f.switches
		f.mu.Unlock()
		page, err := f.backup.Due(ctx, lastDue, pageSize)
		if err != nil {
			return false
		}
		if err := f.bring(ctx, page); err != nil {
			if isFailure(ctx, err) {
				f.fail(turn, err)
			}
			return false
		}
		f.mu.Lock()
		f.goBack()
		f.leftover = len(page) > 0
		f.mu.Unlock()
		if len(page) == 0 || n == pages {
			return true
		}
	}
}

// bring moves a page. The earlier due time stays: a claim in vain at worst.
func (f *failover) bring(ctx context.Context, page []core.Entry) error {
	if len(page) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := f.primary.Add(ctx, page); err != nil {
		return err
	}
	return f.backup.Remove(ctx, page)
}

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

// watch watches one part, again where it can't go on or ends by itself. An error may
// be the first sign of a primary that is gone.
func (f *failover) watch(ctx context.Context, w core.Watcher, notify func()) {
	for ctx.Err() == nil {
		err := w.Watch(ctx, notify)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			select {
			case f.suspect <- struct{}{}:
			default:
			}
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
// only be read doesn't. pages says how many pages at most, 0 all. It ends where the
// primary fails meanwhile, whoever finds that out: the next try has its time.
func (f *failover) bringBack(ctx context.Context, pages int) bool {
	if !f.returning.TryLock() {
		return false // somebody does
	}
	defer f.returning.Unlock()
	for n := 1; ; n++ {
		f.mu.Lock()
		turn := f.switches
		if n > 1 && f.away {
			f.mu.Unlock()
			return false
		}
		f.leftover = false // before the look: a call on the backup that ends later says so
		f.mu.Unlock()
		left, err := f.bringPage(ctx, turn)
		f.mu.Lock()
		back := err == nil && turn == f.switches
		if back {
			f.goBack()
		}
		f.leftover = f.leftover || left || !back
		f.mu.Unlock()
		if !back || !left || n == pages {
			return back
		}
	}
}

// bringPage brings a page. It tells whether there may be more.
func (f *failover) bringPage(ctx context.Context, turn int) (more bool, err error) {
	page, err := f.backup.Due(ctx, lastDue, pageSize)
	if err != nil {
		return true, err
	}
	if err := f.bring(ctx, page); err != nil {
		if isFailure(ctx, err) {
			f.fail(turn, err)
		}
		return true, err
	}
	return len(page) > 0, nil
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

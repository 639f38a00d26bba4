package heapindex

import "context"

// Watch implements [core.Watcher]. It calls notify in the caller's goroutine:
// once at its start, since an entry may have come just before it, and then for
// each new earliest entry; those that come while notify runs are merged into one
// call. It returns ctx's error when ctx is done, and nothing else.
func (x *Index) Watch(ctx context.Context, notify func()) error {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	x.mu.Lock()
	x.watchers[wake] = struct{}{}
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.watchers, wake)
	}()
	for {
		// Not one select for both: a done ctx must win over a full channel.
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-wake:
			notify()
		}
	}
}

// wakeIfEarlier tells the watchers when the earliest due time is now before the
// one given. The caller holds the lock.
func (x *Index) wakeIfEarlier(before int64) {
	if x.entries.head() >= before {
		return
	}
	for wake := range x.watchers {
		select {
		case wake <- struct{}{}:
		default: // one is pending already
		}
	}
}

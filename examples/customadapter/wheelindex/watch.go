package wheelindex

import "context"

// Watch implements [core.Watcher], in the caller's goroutine. Wake-ups that come
// while notify runs are merged into one. It returns ctx's error and no other.
func (x *Index) Watch(ctx context.Context, notify func()) error {
	wake := make(chan struct{}, 1)
	wake <- struct{}{} // an entry may have come just before
	x.mu.Lock()
	x.watchers[wake] = struct{}{}
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.watchers, wake)
	}()
	for {
		if err := ctx.Err(); err != nil {
			return err // before a wake-up that waits too
		}
		select {
		case <-ctx.Done():
		case <-wake:
			notify()
		}
	}
}

// wake wakes all watchers. The caller holds the lock.
func (x *Index) wake() {
	for watcher := range x.watchers {
		select {
		case watcher <- struct{}{}:
		default: // one waits there already
		}
	}
}

package claim

import (
	"context"
	"sync"
)

// WithLock calls do under l, which may be a lock that takes no ctx: a sync.Mutex, or one
// of a file. Where ctx ends before it is had, WithLock returns the error of ctx without
// having called do, and lets the lock go as soon as it comes. l must be one that another
// goroutine may unlock.
func WithLock(ctx context.Context, l sync.Locker, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if free, ok := l.(interface{ TryLock() bool }); ok && free.TryLock() {
		defer l.Unlock()
		return do()
	}
	had := make(chan struct{})
	go func() {
		l.Lock()
		select {
		case had <- struct{}{}:
		case <-ctx.Done():
			l.Unlock()
		}
	}()
	select {
	case <-had:
		defer l.Unlock()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

package core

import (
	"context"
	"sync"
	"time"
)

// lane lets heartbeats go first where calls wait for a connection of the program's own
// pool. While it is closed no other call of the engine's begins, so that nothing new
// stands before the heartbeat in the pool's queue.
type lane struct {
	mu     sync.Mutex
	closed chan struct{} // closed when the lane opens; nil: it is open
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = make(chan struct{})
	}
}

func (l *lane) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		close(l.closed)
		l.closed = nil
	}
}

// pass waits while the lane is closed, for so long at most.
func (l *lane) pass(ctx context.Context, most time.Duration) {
	l.mu.Lock()
	c := l.closed
	l.mu.Unlock()
	if c != nil {
		await(ctx, c, most)
	}
}

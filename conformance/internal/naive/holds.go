package naive

import (
	"context"
	"errors"
	"sync"
)

// whole is the lock of a whole backend, which another process may hold, and the count
// of what is open.
type whole struct {
	mu   sync.Mutex
	free chan struct{} // closed when nobody holds it
	turn sync.Mutex    // of a handle that lets one call in at a time: a bug
	open int
}

func (w *whole) hold() (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	free := make(chan struct{})
	w.free = free
	return func() { close(free) }
}

// wait waits until nobody else holds the backend, or until ctx is done.
func (w *whole) wait(ctx context.Context, bug string) error {
	w.mu.Lock()
	free := w.free
	if bug == "leaves something open" {
		w.open++
	}
	w.mu.Unlock()
	if free == nil {
		return nil
	}
	switch bug {
	case "a lock that takes no ctx":
		<-free
	case "one call at a time":
		w.turn.Lock()
		defer w.turn.Unlock()
	}
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *whole) idle() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open > 0 {
		return errors.New("a cursor is open")
	}
	return nil
}

// Hold holds the whole backend until release is called.
func (x *Index) Hold() (release func()) { return x.data.whole.hold() }

// Idle says what is open.
func (x *Index) Idle() error { return x.data.whole.idle() }

// Hold holds the whole backend until release is called.
func (s *Store) Hold() (release func()) { return s.whole.hold() }

// Idle says what is open.
func (s *Store) Idle() error { return s.whole.idle() }

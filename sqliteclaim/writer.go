package sqliteclaim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// session is a connection that transactions are made on, one after another.
type session interface {
	querier
	begin(ctx context.Context) error // takes the write lock
	commit(ctx context.Context) error
	rollback(ctx context.Context) // after a begin or commit that failed, too
	release() (kept bool)         // the transaction is over; kept: this session serves the next, never where rollback failed
	close() error                 // of a kept one
}

// writer makes the transactions that write. A file has one writer, so the calls of
// one Store wait for their turn here rather than for SQLite's lock, in order. Other
// processes, other Stores and the user's own transactions they meet at that lock.
//
// A commit waits for the disk, which takes as long for one call as for ten, and
// meanwhile other calls have come. So calls that wait share a transaction, and none
// is told of its success before the commit. One of the callers makes it for all, then
// the first of those that still wait is next: no goroutine belongs to the writer.
//
// Where one of them fails or panics, all is rolled back and they are first in the
// queue again, to be made alone: each by its own caller, under its own context. Where
// the commit fails, it fails for all of them.
type writer struct {
	open    func(ctx context.Context) (session, error)
	patient bool // sessions have no busy time-out: begin is repeated while the file is locked

	mu     sync.Mutex
	queue  []*work // without the leader and those that it has taken
	led    bool    // there is a leader, or one that has its turn and is to lead
	closed bool

	idle session // kept for the next transaction; only the leader touches it
	gaps gaps
}

// work is one call.
type work struct {
	ctx   context.Context
	items int
	run   func(q querier) error // may be called twice, the first time in vain
	alone bool                  // it was made with others, in vain

	turn chan struct{} // gets one value: the call has been answered, or is to lead
	made bool          // it has been answered
	err  error
}

// answer tells a call that was taken out of the queue how it ended.
func (c *work) answer(err error) {
	c.made, c.err = true, err
	c.turn <- struct{}{}
}

func (c *work) do(q querier) error { return cmp.Or(c.run(q), c.ctx.Err()) }

// try makes a call in another's goroutine. A panic is a failure like others here: it
// comes up again where the call is made alone, by its own caller.
func (c *work) try(q querier) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return c.do(q)
}

var (
	errClosed = errors.New("the store is closed")
	errPanic  = errors.New("a call panicked")
)

func newWriter(patient bool, open func(ctx context.Context) (session, error)) *writer {
	return &writer{open: open, patient: patient}
}

// write runs f in a transaction that holds the write lock from its start: one that
// began by reading could not wait for the lock later. f may be called twice, the
// first time in vain, so it must not add to what it did before. The first time may be
// in another caller's goroutine, where f must not call runtime.Goexit.
//
// When ctx ends before the call's turn, the error wraps ctx's and core.ErrNotDone.
//
// It doesn't use sql.Tx, which rolls back in a goroutine of its own when ctx is
// done: the transaction might still be open when the call has returned.
func (w *writer) write(ctx context.Context, items int, f func(q querier) error) error {
	if err := ctx.Err(); err != nil {
		return undone(err)
	}
	c := &work{ctx: ctx, items: items, run: f, turn: make(chan struct{}, 1)}
	if leads, err := w.enter(c); err != nil {
		return undone(err)
	} else if !leads {
		select {
		case <-c.turn:
		case <-ctx.Done():
			if w.leave(c) {
				return undone(ctx.Err())
			}
			<-c.turn
		}
		if c.made {
			return c.err
		}
	}
	defer w.next()
	w.lead(c)
	return c.err
}

// enter makes the call the leader, or lets it wait in the queue.
func (w *writer) enter(c *work) (leads bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return false, errClosed
	case w.led:
		w.queue = append(w.queue, c)
		return false, nil
	default:
		w.led = true
		return true, nil
	}
}

// leave takes a call out of the queue, if it still is there.
func (w *writer) leave(c *work) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, c)
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	return i >= 0
}

// next makes the first in the queue the leader.
func (w *writer) next() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.pop(); c != nil {
		c.turn <- struct{}{}
		return
	}
	w.led = false
}

// take takes the first out of the queue, to be made together with others, if it is
// about no more than so many items. None is there that is to be made alone: those lead
// before any that came after them.
func (w *writer) take(room int) *work {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 || w.queue[0].items > room {
		return nil
	}
	return w.pop()
}

func (w *writer) pop() (c *work) {
	if len(w.queue) > 0 {
		c = w.queue[0]
		w.queue = slices.Delete(w.queue, 0, 1)
	}
	return c
}

// putBack makes calls that were taken the first in the queue again, each to be made
// alone. Those whose context is done have left: they may wait for nothing but an answer.
func (w *writer) putBack(calls []*work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var waiting []*work
	for _, c := range calls {
		c.alone = true
		if err := c.ctx.Err(); err != nil {
			c.answer(undone(err))
		} else {
			waiting = append(waiting, c)
		}
	}
	w.queue = slices.Insert(w.queue, 0, waiting...)
}

// close waits for the calls that came before, refuses others and closes the session.
func (w *writer) close() error {
	c := &work{items: maxItems + 1, turn: make(chan struct{}, 1)} // one that nobody takes
	leads, err := w.enter(c)
	if err != nil {
		return nil // it is closed
	}
	if !leads {
		<-c.turn
	}
	defer w.next()
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	if w.idle == nil {
		return nil
	}
	s := w.idle
	w.idle = nil
	return s.close()
}

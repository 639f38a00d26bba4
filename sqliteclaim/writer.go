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
	release() (kept bool)         // the transaction is over; kept: this session serves the next
	close() error                 // of a kept one
}

// writer makes the transactions that write. A file has one writer, so the calls of
// this process wait for their turn here rather than for SQLite's lock, in order.
//
// A commit waits for the disk, which takes as long for one call as for ten, and
// meanwhile other calls have come. So calls that wait share a transaction, and none
// is told of its success before the commit. One of the callers makes it for all, then
// the first of those that still wait is next: no goroutine belongs to the writer.
//
// Where one of them fails, all is rolled back and each has a transaction of its own.
type writer struct {
	open    func(ctx context.Context) (session, error)
	patient bool // there is no busy time-out: begin is repeated

	mu     sync.Mutex
	queue  []*work
	led    bool
	closed bool

	idle session // the leader's, while there is one
}

// work is one call.
type work struct {
	ctx   context.Context
	items int
	run   func(q querier) error // may be called twice, the first time in vain

	turn chan struct{} // gets one value: the call has been made, or is to lead
	made bool
	err  error
}

var errClosed = errors.New("the store is closed")

func newWriter(patient bool, open func(ctx context.Context) (session, error)) *writer {
	return &writer{open: open, patient: patient}
}

// write runs f in a transaction that holds the write lock from its start: one that
// began by reading could not wait for the lock later. f may be called twice, the
// first time in vain, so it must not add to what it did before.
//
// It doesn't use sql.Tx, which rolls back in a goroutine of its own when ctx is
// done: the transaction might still be open when the call has returned.
func (w *writer) write(ctx context.Context, items int, f func(q querier) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &work{ctx: ctx, items: items, run: f, turn: make(chan struct{}, 1)}
	if leads, err := w.enter(c); err != nil {
		return err
	} else if !leads {
		select {
		case <-c.turn:
		case <-ctx.Done():
			if w.leave(c) {
				return ctx.Err()
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

// take returns the first in the queue, to be made together with others, if it is
// about no more than so many items.
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

// lead makes the first call, and those with it that wait.
func (w *writer) lead(first *work) {
	group, apart, err := w.transaction(first, true)
	for _, c := range group {
		if apart {
			_, _, err = w.transaction(c, false)
		}
		c.err = err
	}
	for _, c := range group[1:] {
		c.made = true
		c.turn <- struct{}{}
	}
}

// transaction makes the first call in a transaction, with company those too that wait
// by then. The group are all that it tried to make; with an error none was made.
// apart: the error is one call's, and the others can be made without it.
func (w *writer) transaction(first *work, company bool) (group []*work, apart bool, err error) {
	ctx := first.ctx
	group = []*work{first}
	s, err := w.session(ctx)
	if err != nil {
		return group, false, err
	}
	defer func() {
		if err != nil {
			s.rollback(ctx)
		}
		if s.release() {
			w.idle = s
		}
	}()
	begin := func() error { return s.begin(ctx) }
	if w.patient {
		err = waitForLock(ctx, begin)
	} else {
		err = begin()
	}
	if err != nil {
		return group, false, err
	}
	room := maxItems
	for c := first; c != nil; {
		if err := cmp.Or(c.run(s), c.ctx.Err()); err != nil {
			return group, len(group) > 1, err
		}
		room -= c.items
		if c = nil; company {
			if c = w.take(room); c != nil {
				group = append(group, c)
			}
		}
	}
	return group, false, s.commit(ctx)
}

// session returns the idle session, or opens one.
func (w *writer) session(ctx context.Context) (s session, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if s, w.idle = w.idle, nil; s != nil {
		return s, nil
	}
	return w.open(ctx)
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

// rolledBack leaves a connection without a transaction, or returns false. There is
// none when BEGIN failed or SQLite rolled back by itself; then ROLLBACK fails, and
// BEGIN says whether that was the reason.
func rolledBack(run func(text string) error) bool {
	return run("ROLLBACK") == nil || run("BEGIN") == nil && run("ROLLBACK") == nil
}

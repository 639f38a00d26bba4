package sqliteclaim

import (
	"context"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// lead makes the leader's own call, and with it those that wait.
func (w *writer) lead(c *work) {
	if !c.alone && w.together(c) {
		return
	}
	c.err = w.transaction(c.ctx, c.do)
}

// together makes the leader's call in one transaction with those that wait by then,
// its mates. It returns false when one of these fails: then nothing was done, and they
// are in the queue again.
func (w *writer) together(leader *work) (made bool) {
	var mates []*work
	defer func() {
		if !made { // or a panic is on its way
			w.putBack(mates)
			return
		}
		for _, c := range mates {
			c.answer(leader.err)
		}
	}()
	apart := false
	leader.err = w.transaction(leader.ctx, func(q querier) error {
		if err := leader.do(q); err != nil {
			return err
		}
		room := maxItems - leader.items
		for c := w.take(room); c != nil; c = w.take(room) {
			mates = append(mates, c)
			if err := c.try(q); err != nil {
				apart = true
				return err
			}
			room -= c.items
		}
		return nil
	})
	return !apart
}

// transaction calls f in a transaction, and commits it when f returns nil. Whatever
// else happens, it is rolled back; a session that can't do that isn't kept. Only after
// an error of the commit is the outcome unknown; others wrap core.ErrNotDone.
func (w *writer) transaction(ctx context.Context, f func(q querier) error) error {
	s, err := w.session(ctx)
	if err != nil {
		return undone(err)
	}
	committed := false
	defer func() {
		if !committed { // f may have panicked
			s.rollback(ctx)
		}
		if s.release() {
			w.idle = s
		}
	}()
	began := time.Now()
	defer func() { w.gaps.worked += time.Since(began) }()
	begin := func() error {
		if err := w.leaveGap(ctx); err != nil {
			return err
		}
		return s.begin(ctx)
	}
	if w.patient {
		err = waitForLock(ctx, begin)
	} else {
		err = begin()
	}
	if err == nil {
		err = f(s)
	}
	if err != nil {
		return undone(err)
	}
	err = s.commit(ctx)
	committed = err == nil
	return err
}

// undone says of an error that came before a commit that nothing was changed.
func undone(err error) error { return fmt.Errorf("%w: %w", core.ErrNotDone, err) }

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

// rolledBack leaves a connection without a transaction, or returns false. There is
// none when BEGIN failed or SQLite rolled back by itself; then ROLLBACK fails, and
// BEGIN says whether that was the reason.
func rolledBack(run func(text string) error) bool {
	return run("ROLLBACK") == nil || run("BEGIN") == nil && run("ROLLBACK") == nil
}

package naive

import (
	"context"
)

// Neighbour returns the index of the queue beside this one.
func (x *Index) Neighbour() *Index {
	n := NewIndex(x.bug)
	x.data.other, n.data.other = n.data, x.data
	return n
}

// across is for the bug of a call that forgets which queue it is for: f works on
// the other queue's entries, by the rules otherwise.
func (x *Index) across(bug string, f func(other *Index)) {
	if x.bug == bug && x.data.other != nil {
		f(&Index{data: x.data.other})
	}
}

// Break has every call fail until heal is called.
func (x *Index) Break() (heal func()) {
	x.set(func() {
		x.data.broken = true
		close(x.data.cut)
		if x.bug == "break forgets" {
			clear(x.data.due)
		}
	})
	return func() {
		x.set(func() {
			x.data.broken = x.bug == "broken for good"
			x.data.cut = make(chan struct{})
		})
	}
}

func (x *Index) set(f func()) {
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	f()
}

// hides tells whether the bug is that a failed write of so many items returns
// nil.
func (x *Index) hides(items int) bool {
	return x.bug == "broken write succeeds" || x.bug == "broken long write succeeds" && items > 256
}

// enter is what each method does first: it fails where ctx is done or the backend
// is away.
func (x *Index) enter(ctx context.Context, items int) error {
	if ctx.Err() != nil && x.bug != "ctx ignored" {
		return ctx.Err()
	}
	if x.bug == "ctx looked at too late" && interrupted(ctx, items) {
		x.data.slow.Do(dawdle) // it goes on
	}
	if err := x.data.whole.wait(ctx, x.bug); err != nil {
		return err
	}
	broken := false
	x.set(func() { broken = x.data.broken })
	switch {
	case !broken:
		return nil
	case x.bug == "broken waits for good":
		x.data.slow.Do(dawdle)
	}
	return errAway
}

package naive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var (
	errAway   = errors.New("the backend is away")
	errLocked = errors.New("a row is locked")
)

// Break has every call fail until heal is called.
func (s *Store) Break() (heal func()) {
	s.set(func() {
		s.broken = true
		if s.is("break forgets") {
			clear(s.rows)
		}
	})
	return func() { s.set(func() { s.broken = s.is("broken for good") }) }
}

// Lock has the row passed over until unlock is called.
func (s *Store) Lock(id core.ID) (unlock func()) {
	s.set(func() { s.locked[id] = true })
	return func() { s.set(func() { delete(s.locked, id) }) }
}

func (s *Store) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// lockedFor tells whether a row is locked by another.
func (s *Store) lockedFor(id core.ID) bool { return s.locked[id] && !s.is("locks ignored") }

// enter is what each method does first: it fails where ctx is done or the backend
// is away.
func (s *Store) enter(ctx context.Context, items int) error {
	if ctx.Err() != nil && !s.is("ctx ignored") {
		return ctx.Err()
	}
	if items == 0 && s.is("empty batch fails") {
		return errors.New("nothing to do")
	}
	if s.is("ctx looked at too late") && interrupted(ctx, items) {
		s.slow.Do(dawdle) // it goes on
	}
	if err := s.whole.wait(ctx, s.bug); err != nil {
		return err
	}
	broken, locked := false, false
	s.set(func() { broken, locked = s.broken, len(s.locked) > 0 })
	if locked && s.is("waits for locks") {
		s.slow.Do(dawdle)
	}
	for locked && s.is("waits for a lock for good") {
		time.Sleep(time.Millisecond)
		s.set(func() { locked = len(s.locked) > 0 })
	}
	switch {
	case !broken, s.is("breaks ignored"):
		return nil
	case s.is("broken waits for good"):
		s.slow.Do(dawdle)
	}
	return errAway
}

// copied returns the rows as they are.
func (s *Store) copied() map[core.ID]*row {
	rows := map[core.ID]*row{}
	for id, r := range s.rows {
		same := *r
		rows[id] = &same
	}
	return rows
}

// dawdle takes longer than the suite is patient with a broken backend.
func dawdle() { time.Sleep(2200 * time.Millisecond) }

// interrupted works on a large batch for a while and tells whether ctx ended
// meanwhile.
func interrupted(ctx context.Context, items int) bool {
	if items < 500 {
		return false
	}
	time.Sleep(30 * time.Millisecond)
	return ctx.Err() != nil
}

// unless is err, or nil where the bug is to hide that the backend failed.
func unless(hidden bool, err error) error {
	if hidden && (errors.Is(err, errAway) || errors.Is(err, errLocked)) {
		return nil
	}
	return err
}

func (s *Store) allGone(ids []core.ID) []core.Claimed {
	var got []core.Claimed
	for _, id := range ids {
		got = append(got, core.Claimed{ID: id, Verdict: core.Gone})
	}
	return got
}

func allFail(settlements []core.Settlement, err error) error {
	var failed []core.ItemError
	for i, x := range settlements {
		failed = append(failed, core.ItemError{Index: i, ID: x.Grant.ID, Err: err})
	}
	return core.NewBatchError(failed)
}

// fenced tells whether a settlement is its row's holder's.
func (s *Store) fenced(r *row, x core.Settlement) bool {
	again := x.Outcome == core.Retry || x.Outcome == core.Released
	if r != nil && (again && s.is("no token on retry") || !again && s.is("no token on completion")) {
		return true
	}
	return s.holds(r, x.Grant)
}

func (s *Store) sameHolder(a, b string) bool {
	return a == b || s.is("holders cut at 63 bytes") && len(a) == 64 && len(b) == 64 && a[:63] == b[:63]
}

func (s *Store) leaseEnd(t time.Time) time.Time {
	if s.is("leases end within 31 bits") {
		return time.UnixMilli(min(t.UnixMilli(), 1<<31*1000)).UTC()
	}
	return s.time(t)
}

func (s *Store) anyCase(id core.ID) *row {
	for other, r := range s.rows {
		if strings.EqualFold(strings.TrimSpace(string(other)), strings.TrimSpace(string(id))) {
			return r
		}
	}
	return nil
}

// hides tells whether the bug is that a failed write of so many items returns
// nil.
func (s *Store) hides(items int) bool {
	return s.is("commit error is success") || s.is("broken long write succeeds") && items > 256
}

// misplaced is failed, with places that the bug counts anew after 2,000 items.
func (s *Store) misplaced(failed []core.ItemError) []core.ItemError {
	if s.is("places are of the second 2,000") {
		failed = slices.Clone(failed)
		for i := range failed {
			failed[i].Index %= 2000
		}
	}
	return failed
}

// thin loses a row out of Waiting's sight when few are left of many that were
// done, as a tree does that joins its leaves badly: once, and a pending one, so
// that it is missed after whatever batch is being settled.
func (s *Store) thin() {
	if !s.is("thinning loses a row") {
		return
	}
	live, done := 0, 0
	var lost *row
	for _, r := range s.rows {
		switch {
		case r.unseen:
			return
		case r.live():
			live++
		case r.state == "done":
			done++
		}
		if r.state == "pending" && (lost == nil || r.task.ID < lost.task.ID) {
			lost = r
		}
	}
	if live <= 64 && live+done > 250 && lost != nil {
		lost.unseen = true
	}
}

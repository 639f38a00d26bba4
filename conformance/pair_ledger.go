package conformance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// ledger writes down what a store granted and accepted, on whatever handle, and
// finds out whether two leases of one task were ever alive at once.
type ledger struct {
	mu     sync.Mutex
	events int
	grants map[core.ID][]*granted
}

type granted struct {
	token int64
	now   time.Time // of the Claim
	until time.Time // as far as it was extended
	// A Settle was accepted, and one as Done.
	settled, done bool
	maybe         bool // one had an unknown outcome
	// The numbers of the events at which the Claim was answered, and at which a
	// Settle was sent that was not refused: from then on somebody else may be
	// next. 0: none.
	claimed, ended int
}

// of returns the entry of a grant, nil where it is unknown.
func (l *ledger) of(g core.Grant) *granted {
	for _, x := range l.grants[g.ID] {
		if x.token == g.Token {
			return x
		}
	}
	return nil
}

func (l *ledger) newest(id core.ID) int64 {
	newest := int64(-1)
	for _, x := range l.grants[id] {
		newest = max(newest, x.token)
	}
	return newest
}

func newLedger() *ledger { return &ledger{grants: map[core.ID][]*granted{}} }

// ledgerStore has a ledger see all that passes.
type ledgerStore struct {
	core.Store
	l      *ledger
	report func(format string, args ...any)
}

// watched returns s with the ledger in between, and its clock, if it has one.
func (l *ledger) watched(s core.Store, report func(format string, args ...any)) core.Store {
	x := &ledgerStore{s, l, report}
	if clock, ok := s.(core.TimeSource); ok {
		return struct {
			core.Store
			core.TimeSource
		}{x, clock}
	}
	return x
}

func (s *ledgerStore) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	got, err := s.Store.Claim(ctx, ids, lease)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	for _, c := range got {
		if c.Verdict == core.Granted && s.l.of(c.Grant) == nil { // not a repeat
			s.l.grants[c.ID] = append(s.l.grants[c.ID], &granted{token: c.Grant.Token, now: lease.Now, until: c.At, claimed: s.l.event()})
		}
	}
	return got, err
}

func (s *ledgerStore) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	err := s.Store.Extend(ctx, grants, until)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	for i, g := range grants {
		if x := s.l.of(g); x != nil && accepted(err, i) && until.After(x.until) {
			x.until = until
		}
	}
	return err
}

func (s *ledgerStore) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	newest := make([]int64, len(settlements))
	s.l.mu.Lock()
	for i, st := range settlements {
		newest[i] = s.l.newest(st.Grant.ID)
		if x := s.l.of(st.Grant); x != nil && x.ended == 0 {
			x.ended = s.l.event()
		}
	}
	s.l.mu.Unlock()
	err := s.Store.Settle(ctx, now, settlements)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	for i, st := range settlements {
		if x := s.l.of(st.Grant); x != nil && accepted(err, i) {
			x.settled = true
			x.done = x.done || st.Outcome == core.Done
		} else if x != nil && !refused(err, i) {
			x.maybe = true
		} else if x != nil && !x.settled && !x.maybe { // a repeat is refused once somebody else is next
			x.ended = 0
		}
		if accepted(err, i) && st.Grant.Token < newest[i] {
			s.report("Settle of %q under token %d was accepted though token %d had been granted before", st.Grant.ID, st.Grant.Token, newest[i])
		}
	}
	return err
}

// completions returns how many grants of id ended as Done.
func (l *ledger) completions(id core.ID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, x := range l.grants[id] {
		if x.done {
			n++
		}
	}
	return n
}

func (l *ledger) event() int {
	l.events++
	return l.events
}

// accepted says whether item i of a batch took effect for certain.
func accepted(err error, i int) bool {
	var batch *core.BatchError
	return err == nil || errors.As(err, &batch) && !refused(err, i)
}

// refused says whether item i of a batch had no effect for certain.
func refused(err error, i int) bool {
	var batch *core.BatchError
	return errors.As(err, &batch) && slices.ContainsFunc(batch.Items, func(item core.ItemError) bool { return item.Index == i })
}

// wantNoTwoLeases fails for each task that was granted while an earlier lease of
// it was alive.
func (e *pairEnv) wantNoTwoLeases(l *ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, list := range l.grants {
		slices.SortFunc(list, func(a, b *granted) int { return cmp.Compare(a.token, b.token) })
		for i := 1; i < len(list); i++ {
			old, next := list[i-1], list[i]
			if over := old.ended > 0 && old.ended < next.claimed; !over && !old.until.Before(next.now) {
				e.Errorf("%q was granted under token %d by a claim at %s, while the lease under token %d lasted until %s",
					id, next.token, stamp(next.now), old.token, stamp(old.until))
			}
		}
	}
}

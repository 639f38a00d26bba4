package history

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"pgregory.net/rapid"
)

// TestStore plays random histories on a Store, as a subtest of t.
func TestStore(t *testing.T, store conformance.Store, o Options) {
	t.Helper()
	t.Run("history/model", func(t *testing.T) {
		t.Attr("dueclaim.group", "history")
		t.Attr("dueclaim.rule", modelRule)
		report(t, o, func(seed uint64) *failure { return searchStore(t, store, seed, o) })
	})
}

func searchStore(t *testing.T, store conformance.Store, seed uint64, o Options) *failure {
	return search(t.Name(), seed, o, func(r *record) {
		first := store.New(t)
		peer := first
		if store.Peer != nil {
			peer = store.Peer(t, first)
		}
		s := newStoreRun(t, r, store.Provides.KeepsFinished, first, peer)
		actions := s.claimActions()
		actions["insert"], actions["insert more"], actions["insert again"] = s.insertNew, s.insertNew, s.insertAgain
		actions["cancel"], actions["reschedule"] = s.cancel, s.reschedule
		if store.Provides.Purger {
			actions["purge"] = s.purge
		}
		r.Repeat(actions)
		s.ending(true)
	})
}

// TestClaimer plays random histories on a Claimer, as a subtest of t. Each id is
// put there once: what becomes of one that is used again is its users' affair.
func TestClaimer(t *testing.T, claimer conformance.Claimer, o Options) {
	t.Helper()
	t.Run("history/model", func(t *testing.T) {
		t.Attr("dueclaim.group", "history")
		t.Attr("dueclaim.rule", modelRule)
		report(t, o, func(seed uint64) *failure { return searchClaimer(t, claimer, seed, o) })
	})
}

func searchClaimer(t *testing.T, claimer conformance.Claimer, seed uint64, o Options) *failure {
	return search(t.Name(), seed, o, func(r *record) {
		first := claimer.New(t)
		peer := first
		if claimer.Peer != nil {
			peer = claimer.Peer(t, first)
		}
		s := newStoreRun(t, r, claimer.Provides.KeepsFinished, first, peer)
		s.putNew = func(tasks []core.Task) { claimer.Put(t, first, tasks) }
		actions := s.claimActions()
		actions["put"] = s.put
		r.Repeat(actions)
		s.ending(false)
	})
}

// storeRun is a history of a store. Where the contract leaves a freedom, the
// history either stays away from it or lets both answers pass; each such place has
// a comment that begins "Free:".
type storeRun struct {
	*record
	pools
	t       *testing.T
	handles []core.Claimer
	right   *naive.Store
	keeps   bool // done and cancelled rows stay
	putNew  func(tasks []core.Task)
	putIDs  map[core.ID]bool

	calls  []insertCall
	claims []claimCall
	names  map[string]int // how many were made up so far
	clock  int            // hours, for Call.Now
	grants []pair
	// highest and floor are what the next grant's token must be above: every
	// earlier one of the id, and the Call.Now of the Insert that made the row.
	highest, floor map[core.ID]int64
	// deleted: some row went, so that only Call.Now can make tokens rise.
	deleted bool
	// rescheduled tasks were changed by a Reschedule since their last grant.
	rescheduled map[core.ID]bool
}

type insertCall struct {
	id    string
	now   time.Time
	tasks []core.Task
}

type claimCall struct {
	ids   []core.ID
	lease core.Lease
}

// pair is a grant as the right store gave it and as the tested one did. Free: how
// tokens are counted, as long as they rise.
type pair struct{ right, tested core.Grant }

func newStoreRun(t *testing.T, r *record, keeps bool, first, peer core.Claimer) *storeRun {
	right := naive.NewStore("")
	right.Deletes = !keeps
	return &storeRun{
		record: r, pools: drawPools(r.T), t: t, handles: []core.Claimer{first, peer}, right: right, keeps: keeps,
		names: map[string]int{}, putIDs: map[core.ID]bool{}, highest: map[core.ID]int64{}, floor: map[core.ID]int64{}, rescheduled: map[core.ID]bool{},
	}
}

// claimActions are the steps of any Claimer, those that matter most twice.
func (s *storeRun) claimActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"claim": s.claimNew, "claim more": s.claimNew, "claim again": s.claimAgain,
		"extend": s.extend, "settle": s.settle, "settle more": s.settle,
		"waiting": s.waiting, "pages": s.pages,
	}
}

// at chooses the handle and the context of a call.
func (s *storeRun) at(t *rapid.T) (c core.Claimer, ctx context.Context, who string) {
	i := rapid.IntRange(0, 1).Draw(t, "handle")
	return s.handles[i], callContext(t, s.t), [...]string{"first", "peer"}[i]
}

// unique returns a new name that differs only in case from the one before or after.
func (s *storeRun) unique(small, large string) string {
	n := s.names[small]
	s.names[small]++
	return [...]string{small, large}[n%2] + fmt.Sprint(n/2)
}

// sameRefusals compares the failed items of two answers.
func (s *storeRun) sameRefusals(want, got error) {
	w, _ := showItems(want)
	g, ok := showItems(got)
	if !ok {
		s.fail("got error: %v; want nil or a *core.BatchError", got)
	}
	same(s.record, "failed items", w, g, showItem)
}

// ending looks at all there is, as the claims and cancels of all ids show it.
func (s *storeRun) ending(store bool) {
	s.step("all that waits, at each instant")
	for _, now := range s.times {
		s.comparePages(s.handles[1], now, endOfTime, 3)
	}
	if store {
		for _, c := range s.calls { // which of them are remembered
			s.insert(s.t.Context(), s.handles[0], "first", insertCall{c.id, s.callNow(s.T), c.tasks}, true)
		}
	}
	end := endOfTime.Add(-time.Second) // every lease but the longest is over
	s.claim(s.t.Context(), s.handles[1], "peer", claimCall{s.ids, core.Lease{Holder: "ending", Now: end, DueBy: endOfTime, Until: endOfTime}})
	for _, g := range s.grants {
		s.settleAll(s.t.Context(), s.handles[0], "first", end, []settlement{{g, core.Released, s.base}})
	}
	if store {
		s.cancelAll(s.t.Context(), s.handles[1], "peer", end, s.ids)
		s.cancelAll(s.t.Context(), s.handles[0], "first", end, s.ids)
	}
}

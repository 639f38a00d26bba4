package history

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestStore plays random histories on a Store, as a subtest of t.
func TestStore(t *testing.T, store conformance.Store, o Options) {
	t.Helper()
	require.NotNil(t, store.New, "conformance.Store.New is nil")
	t.Run(modelCase, func(t *testing.T) {
		attributes(t, modelCase, modelRule)
		report(t, o, func(seed uint64) *failure { return searchStore(t, store, seed, o) })
	})
}

func searchStore(t *testing.T, store conformance.Store, seed uint64, o Options) *failure {
	return search(t, seed, o, func(r *record) {
		fresh := func(r *record, p pools) *storeRun {
			both := storeHandles(t, store, 2)
			return newStoreRun(t, r, p, store.Provides.KeepsFinished, both[0], both[1])
		}
		s := fresh(r, drawPools(r.T))
		s.fresh = fresh
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
	require.NotNil(t, claimer.New, "conformance.Claimer.New is nil")
	require.NotNil(t, claimer.Put, "conformance.Claimer.Put is nil")
	t.Run(modelCase, func(t *testing.T) {
		attributes(t, modelCase, modelRule)
		report(t, o, func(seed uint64) *failure { return searchClaimer(t, claimer, seed, o) })
	})
}

func searchClaimer(t *testing.T, claimer conformance.Claimer, seed uint64, o Options) *failure {
	return search(t, seed, o, func(r *record) {
		fresh := func(r *record, p pools) *storeRun {
			first, peer := claimerHandles(t, claimer)
			s := newStoreRun(t, r, p, claimer.Provides.KeepsFinished, first, peer)
			s.putNew = func(tasks []core.Task) { claimer.Put(t, first, tasks) }
			return s
		}
		s := fresh(r, drawPools(r.T))
		s.fresh = fresh
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

	// script is what was done so far, to be done again without some of it on a
	// store that fresh makes.
	script []func(*storeRun)
	fresh  func(*record, pools) *storeRun

	calls  []insertCall
	claims []claimCall
	names  map[string]int // how many were made up so far
	clock  int            // hours, for Call.Now
	grants []pair
	// highest is what the next grant's token must be above: those of all earlier grants
	// of the id, also of rows that are no longer there.
	highest map[core.ID]int64
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
type pair struct {
	right, tested core.Grant
	nth           nth
}

// nth names a grant by what gave it, which holds also where steps are left out.
type nth struct {
	id     core.ID
	holder string
	n      int
}

// ref stands for a grant in a step: its token is that of an earlier grant, and so
// is its holder, if not of the same one.
type ref struct {
	token  nth
	holder string
}

// resolve returns the grant that r stands for; none where the step that gave it was
// left out.
func (s *storeRun) resolve(r ref) (pair, bool) {
	i := slices.IndexFunc(s.grants, func(p pair) bool { return p.nth == r.token })
	if i < 0 {
		return pair{}, false
	}
	p := s.grants[i]
	p.right.Holder, p.tested.Holder = r.holder, r.holder
	return p, true
}

func newStoreRun(t *testing.T, r *record, p pools, keeps bool, first, peer core.Claimer) *storeRun {
	right := naive.NewStore("")
	right.Deletes = !keeps
	s := &storeRun{
		record: r, pools: p, t: t, handles: []core.Claimer{first, peer}, right: right, keeps: keeps,
		names: map[string]int{}, putIDs: map[core.ID]bool{}, highest: map[core.ID]int64{}, rescheduled: map[core.ID]bool{},
	}
	if r.T != nil {
		r.again = s.again
	}
	return s
}

// do does one action of the history and remembers it.
func (s *storeRun) do(action func(*storeRun)) {
	s.script = append(s.script, action)
	s.actions = len(s.script)
	action(s)
}

// again plays the script without some of its actions.
func (s *storeRun) again(without []bool) (r *record) {
	r = &record{dog: s.dog, wanted: s.kind}
	s.dog.again()
	defer func() {
		if p := recover(); p != nil && p != (stopped{}) {
			r.broken = ""
		}
	}()
	run := s.fresh(r, s.pools)
	for i, action := range s.script {
		if !without[i] {
			action(run)
		}
	}
	return r
}

// claimActions are the steps of any Claimer, those that matter most twice.
func (s *storeRun) claimActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"claim": s.claimNew, "claim more": s.claimNew, "claim again": s.claimAgain,
		"extend": s.extend, "settle": s.settle, "settle more": s.settle,
		"waiting": s.waiting, "pages": s.pages,
	}
}

// place is where a call is made, and under which context.
type place struct {
	handle int
	ctx    context.Context
}

func (p place) String() string { return [...]string{"first", "peer"}[p.handle] }

func (s *storeRun) at(t *rapid.T) place {
	return place{rapid.IntRange(0, 1).Draw(t, "handle"), callContext(t, s.t)}
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
	first, peer := place{0, s.t.Context()}, place{1, s.t.Context()}
	for _, now := range s.times {
		s.do(func(s *storeRun) { s.comparePages(peer, now, endOfTime, 3) })
	}
	if store {
		for i, c := range s.calls { // which of them are remembered
			c.now = s.base.Add(time.Duration(10_000+i) * time.Hour) // see callNow
			s.do(func(s *storeRun) { s.insert(first, c, true) })
		}
	}
	end := endOfTime.Add(-time.Second) // every lease but the longest is over
	s.do(func(s *storeRun) {
		s.claim(peer, claimCall{s.ids, core.Lease{Holder: "ending", Now: end, DueBy: endOfTime, Until: endOfTime}})
	})
	for _, g := range s.grants {
		s.do(func(s *storeRun) {
			s.settleAll(first, end, []settlement{{ref{g.nth, g.right.Holder}, core.Released, s.base}})
		})
	}
	if store {
		s.do(func(s *storeRun) { s.cancelAll(peer, end, s.ids) })
		s.do(func(s *storeRun) { s.cancelAll(first, end, s.ids) })
	}
}

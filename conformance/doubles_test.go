package conformance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

// double is a backend with one bug, and the case that is there to catch it.
type double struct {
	bug  string
	want string // the case meant for the bug
	// deletes has the store delete finished tasks at once.
	deletes bool
	also    string // the groups, beside that case's own, whose rules the bug breaks too
	alone   bool   // the bug breaks all cases; one is enough
}

// pairDoubles are broken stores and indexes as the scheduler meets them; each is
// run through the case meant for it only.
var pairDoubles = []double{
	{bug: "cancel leaves the pending", want: "run/changes-honoured"},
	{bug: "retry due at once", want: "run/failures"},
	{bug: "crashes not counted", want: "tick/made-up-time"},
	{bug: "waiting hides all", want: "sweep/index-lost"},
	{bug: "waiting hides all", want: "crash/taken-unclaimed"},
	{bug: "release counts the attempt", want: "drain/gives-back"},
	{bug: "leases ignored", want: "crash/taken-over"},
	{bug: "token ignored", want: "crash/taken-over"},
	{bug: "done stays pending", want: "run/each-once"},
	{bug: "leases ignored", want: "faults/lossy-index"},
	{bug: "waiting hides all", want: "faults/lossy-index"},
	{bug: "insert repeat exists", want: "faults/failing-store"},
}

// alone is the case that counts the goroutines of the process.
const alone = "watch/joins"

// timed are the cases that step in while calls are under way. On a busy machine one run
// can miss the moment, and so a bug.
var timed = []string{"context/midway", "context/midway-claims", "context/midway-stores", "break/midway", "break/midway-claims"}

// insist runs the cases up to fifteen times where the one meant for d is timed.
func (d double) insist(run func() map[string]string) map[string]string {
	failures := run()
	for try := 1; try < 15 && failures[d.want] == "" && slices.Contains(timed, d.want); try++ {
		failures = run()
	}
	return failures
}

// heavy cases are run for a double only where they are meant for it.
var heavy = []string{
	"claim/large-bytes", "claim/one-winner", "claim/take-over-one-winner", "claim/against-settle",
	"contract/concurrent", "contract/large-batch", "contract/large-batch-store", "insert/one-bad-of-many",
	"take/no-id-twice", "watch/earlier-head", "watch/new-head", "watch/ends", "watch/joins", "watch/many", "watch/restored", "restore/at-every-boundary", "restore/one-winner",
	"insert/one-winner", "insert/replace-one-winner", "cancel/against-claim", "reschedule/against-claim",
	"batch/at-every-boundary", "batch/at-every-boundary-store", "insert/at-every-boundary", "batch/heavy", "waiting/after-thinning",
	"take/large", "watch/earliest-anywhere", "waiting/behind-many-held", boundedCost, "batch/one-bad-of-many", "batch/one-bad-of-many-store", "tx/large-batch",
	"context/midway", "context/midway-claims", "context/midway-stores", "break/midway", "break/midway-claims", "break/watch",
	"break/deadline", "break/deadline-claims", "hold/ctx", "hold/claims", "hold/stores", "clock/shared",
	"queue/entries", "queue/takes", "queue/restores", "queue/lists", "list/goes-on", "list/large", "queue/claims", "queue/changes", "queue/purge", "queue/tx", // whole lives: most bugs show in them
}

func (d double) runs(name string) bool {
	return name == d.want || !d.alone && !slices.Contains(heavy, name)
}

// check fails unless the double failed the case meant for it and no case of an
// unrelated group.
func (d double) check(t *testing.T, failures map[string]string) bool {
	text, caught := failures[d.want]
	assert.True(t, caught, "the bug %q was not caught by %s; failed: %v", d.bug, d.want, slices.Sorted(maps.Keys(failures)))
	if caught {
		assert.True(t, strings.HasPrefix(text, "broken rule: "), "the failure quotes the rule; got %s", text)
	}
	own, _, _ := strings.Cut(d.want, "/")
	for name, text := range failures {
		group, _, _ := strings.Cut(name, "/")
		if group != own && d.also != "*" && !slices.Contains(strings.Fields(d.also), group) {
			t.Errorf("the bug %q also failed %s, which is of another group: %s", d.bug, name, text)
		}
	}
	return caught
}

func naiveIndexBackend(bug string) conformance.Index {
	return conformance.Index{
		New:       func(*testing.T) core.TimeIndex { return naive.NewIndex(bug) },
		Peer:      func(_ *testing.T, first core.TimeIndex) core.TimeIndex { return first.(*naive.Index).Peer() },
		Break:     func(_ *testing.T, idx core.TimeIndex) func() { return idx.(*naive.Index).Break() },
		Hold:      func(_ *testing.T, idx core.TimeIndex) func() { return idx.(*naive.Index).Hold() },
		Idle:      func(_ *testing.T, idx core.TimeIndex) error { return idx.(*naive.Index).Idle() },
		Lose:      func(_ *testing.T, idx core.TimeIndex) { idx.(*naive.Index).Lose() },
		Neighbour: func(_ *testing.T, first core.TimeIndex) core.TimeIndex { return first.(*naive.Index).Neighbour() },
		Provides:  conformance.IndexProvides{Taker: true, Watcher: true, Restorer: true, Detector: true, Lister: true},
	}
}

func naiveStoreBackend(bug string, deletes bool) conformance.Store {
	skip := map[string]string{boundedCost: "an oracle that is as plain as can be looks at every row"}
	if bug == "as plain as can be" {
		skip = nil
	}
	plain := func(s core.Store) *naive.Store {
		if by, ok := s.(twisted); ok {
			return by.Store
		}
		if clocked, ok := s.(*naive.Clocked); ok {
			return clocked.Store
		}
		return s.(*naive.Store)
	}
	return conformance.Store{
		New: func(*testing.T) core.Store {
			s := naive.NewClocked(bug)
			s.Deletes = deletes
			if bug == "no clock" {
				return s.Store
			}
			return s
		},
		Peer: func(_ *testing.T, first core.Store) core.Store {
			if clocked, ok := first.(*naive.Clocked); ok {
				return clocked.Peer()
			}
			return first
		},
		Lock:  func(_ *testing.T, s core.Store, id core.ID) func() { return plain(s).Lock(id) },
		Break: func(_ *testing.T, s core.Store) func() { return plain(s).Break() },
		Hold:  func(_ *testing.T, s core.Store) func() { return plain(s).Hold() },
		Idle:  func(_ *testing.T, s core.Store) error { return plain(s).Idle() },
		Neighbour: func(_ *testing.T, first core.Store) core.Store {
			if _, ok := first.(*naive.Clocked); ok {
				return &naive.Clocked{Store: plain(first).Neighbour()}
			}
			return plain(first).Neighbour()
		},
		Begin:    func(_ *testing.T, s core.Store) conformance.Tx { return plain(s).Begin() },
		Wrote:    func(_ *testing.T, s core.Store, key string) bool { return plain(s).Wrote(key) },
		Provides: conformance.StoreProvides{TimeSource: true, Purger: true, KeepsFinished: !deletes},
		Skip:     skip,
	}
}

const boundedCost = "waiting/bounded-cost"

func TestARightNaiveIndexPasses(t *testing.T) { conformance.TestIndex(t, naiveIndexBackend("")) }

func TestARightNaiveStorePasses(t *testing.T) {
	t.Run("keeps-finished", func(t *testing.T) { conformance.TestStore(t, naiveStoreBackend("", false)) })
	t.Run("deletes-finished", func(t *testing.T) { conformance.TestStore(t, naiveStoreBackend("", true)) })
}

func TestEachBrokenIndexFailsTheCaseMeantForIt(t *testing.T) {
	cases, _, _ := conformance.CaseNames()
	eachDouble(t, "broken indexes", indexDoubles, cases, func(t *testing.T, d double) map[string]string {
		return conformance.IndexFailures(t, naiveIndexBackend(d.bug), d.runs)
	})
}

func TestEachBrokenStoreFailsTheCaseMeantForIt(t *testing.T) {
	_, cases, _ := conformance.CaseNames()
	eachDouble(t, "broken stores", storeDoubles, cases, func(t *testing.T, d double) map[string]string {
		return conformance.StoreFailures(t, naiveStoreBackend(d.bug, d.deletes), d.runs)
	})
}

// eachDouble runs the suite on every double and sets how many were caught. A case
// that none of them fails proves nothing that is known of.
func eachDouble(t *testing.T, what string, doubles []double, cases []string, run func(t *testing.T, d double) (failures map[string]string)) {
	t.Helper()
	var mu sync.Mutex
	ran, caught, failed := 0, 0, map[string]bool{}
	t.Run("all", func(t *testing.T) { // ends when the parallel ones have
		for _, d := range doubles {
			t.Run(d.bug+": "+d.want, func(t *testing.T) {
				if d.want != alone {
					t.Parallel()
				}
				failures := d.insist(func() map[string]string { return run(t, d) })
				mu.Lock()
				defer mu.Unlock()
				ran++
				if d.check(t, failures) {
					caught++
				}
				for name := range failures {
					failed[name] = true
				}
			})
		}
	})
	t.Attr("dueclaim.caught", fmt.Sprintf("%s: %d of %d", what, caught, ran))
	if ran == len(doubles) {
		for _, name := range cases {
			// TestCapabilitiesAreCheckedBothWays has that one fail.
			assert.True(t, failed[name] || byTwist(name) || name == "contract/provides", "no broken double fails the case %s", name)
		}
	}
}

func naivePair(bug string) conformance.Pair {
	store, index := naiveStoreBackend(bug, false), naiveIndexBackend(bug)
	return conformance.Pair{Index: index.New, PeerIndex: index.Peer, Store: store.New}
}

func TestTheMainJobOnRightNaiveParts(t *testing.T) {
	t.Parallel()
	conformance.TestScheduler(t, naivePair(""))
}

func TestEachBrokenPairFailsTheCaseMeantForIt(t *testing.T) {
	_, _, cases := conformance.CaseNames()
	eachDouble(t, "broken pairs", pairDoubles, cases, func(t *testing.T, d double) map[string]string {
		return conformance.PairFailures(t, naivePair(d.bug), func(name string) bool { return name == d.want })
	})
}

package conformance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
	also string // the groups, beside that case's own, whose rules the bug breaks too
}

var indexDoubles = []double{
	{bug: "ids ignore case", want: "ids/bytes", also: "due take"},
	{bug: "times in seconds", want: "times/exact", also: "contract due add move remove take ids"},
	{bug: "times in local zone", want: "times/exact", also: "contract due add move remove take ids"},
	{bug: "ctx ignored", want: "contract/done-ctx"},
	{bug: "batch cut at 1,000", want: "contract/large-batch", also: "take"},
	{bug: "argument sorted", want: "contract/slices-are-the-callers"},
	{bug: "add keeps the later", want: "add/earlier-wins"},
	{bug: "add overwrites", want: "add/earlier-wins"},
	{bug: "add refuses known ids", want: "add/earlier-wins"},
	{bug: "due excludes now", want: "times/due-boundary", also: "contract due take"},
	{bug: "ties in any order", want: "due/order", also: "ids take"},
	{bug: "ties without case", want: "due/order", also: "ids"},
	{bug: "limit ignored", want: "due/limit", also: "take"},
	{bug: "move without compare", want: "move/compare"},
	{bug: "move puts what is missing", want: "move/missing"},
	{bug: "move only later", want: "move/compare", also: "times take"},
	{bug: "remove without compare", want: "remove/compare"},
	{bug: "take not atomic", want: "take/no-id-twice"},
	{bug: "take in any order", want: "take/order-and-limit"},
	{bug: "take removes", want: "take/moves"},
	{bug: "next counts what was taken", want: "take/next"},
	{bug: "next skips what is due", want: "take/next"},
	{bug: "next missing", want: "take/next"},
	{bug: "watch never hears", want: "watch/earlier-head"},
	{bug: "watch hears its own handle only", want: "watch/earlier-head"},
	{bug: "watch returns at once", want: "watch/ends"},
	{bug: "watch leaks", want: "watch/joins"},
	{bug: "one watch only", want: "watch/many"},
}

var storeDoubles = []double{
	{bug: "ids ignore case", want: "ids/bytes", also: "waiting cancel"},
	{bug: "ids cut at 191 bytes", want: "ids/bytes", also: "cancel"},
	{bug: "times in seconds", want: "times/exact", also: "*"},
	{bug: "ctx ignored", want: "contract/done-ctx-store"},
	{bug: "payload shared", want: "contract/slices-are-the-callers"},
	{bug: "payload ends at NUL", want: "claim/fields"},
	{bug: "kind trimmed", want: "claim/fields"},
	{bug: "call ids ignore case", want: "insert/call-id-bytes"},
	{bug: "insert repeat replaces", want: "insert/repeat-live"},
	{bug: "insert repeat exists", want: "insert/repeat-live"},
	{bug: "insert replaces live", want: "insert/exists"},
	{bug: "insert failures misplaced", want: "insert/exists"},
	{bug: "reuse keeps counts", want: "insert/replaces-finished"},
	{bug: "token restarts on reuse", want: "token/rises-across-reuse", also: "insert purge"},
	{bug: "token from Call.Now on reuse", want: "token/rises-without-clock"},
	{bug: "verdicts sorted", want: "claim/order-of-ids", also: "*"},
	{bug: "claim by Now, not DueBy", want: "claim/due-by", also: "times reschedule"},
	{bug: "claim ignores due", want: "claim/due-by", also: "*"},
	{bug: "claim repeat unknown", want: "claim/repeat"},
	{bug: "claim checks, then writes", want: "claim/one-winner"},
	{bug: "claim checks, then writes", want: "claim/take-over-one-winner"},
	{bug: "settle checks, then writes", want: "claim/against-settle"},
	{bug: "insert checks, then writes", want: "insert/one-winner"},
	{bug: "insert checks, then writes", want: "insert/replace-one-winner"},
	{bug: "cancel checks, then writes", want: "cancel/against-claim"},
	{bug: "reschedule checks, then writes", want: "reschedule/against-claim"},
	{bug: "held at now", want: "claim/never-before-lease-end", also: "*"},
	{bug: "lease stolen at its end", want: "claim/never-before-lease-end", also: "extend times"},
	{bug: "take-over by DueBy", want: "claim/take-over-by-now"},
	{bug: "take-over by a clock", want: "claim/take-over-by-now", also: "*"},
	{bug: "take-over keeps token", want: "claim/take-over", also: "token"},
	{bug: "crashes not counted", want: "claim/take-over", also: "settle"},
	{bug: "token ignored", want: "settle/older-refused", also: "extend token claim purge"},
	{bug: "holder ignored", want: "token/both-count"},
	{bug: "holders ignore case", want: "token/both-count"},
	{bug: "extend shortens", want: "extend/never-shortens"},
	{bug: "extend reads a clock", want: "extend/lapsed"},
	{bug: "extend repeat lost", want: "extend/repeat"},
	{bug: "extend all or nothing", want: "extend/lost"},
	{bug: "settle refuses late", want: "settle/late", also: "claim times token"},
	{bug: "settle repeat refused", want: "settle/repeat", also: "cancel"},
	{bug: "settle changes the settled", want: "settle/no-second-thoughts", also: "cancel"},
	{bug: "settle of a cancelled one succeeds", want: "cancel/holder-learns"},
	{bug: "retry keeps Task.Due", want: "settle/retry"},
	{bug: "release counts the attempt", want: "settle/released", also: "claim insert reschedule"},
	{bug: "release changes Task.Due", want: "settle/released"},
	{bug: "pages skip equal dues", want: "waiting/pages"},
	{bug: "bound inclusive", want: "waiting/before-is-exclusive"},
	{bug: "waiting shows the held", want: "waiting/limit-counts-returned", also: "*"},
	{bug: "waiting hides the lapsed", want: "waiting/lapsed", also: "*"},
	{bug: "limit counts the held", want: "waiting/limit-counts-returned"},
	{bug: "cancel changes the finished", want: "cancel/finished-stays", also: "insert purge"},
	{bug: "cancel repeat finished", want: "cancel/repeat", also: "insert purge"},
	{bug: "cancel by state alone", want: "cancel/fates"},
	{bug: "cancel leaves the running", want: "cancel/holder-learns", also: "token"},
	{bug: "reschedule moves the running", want: "reschedule/not-pending"},
	{bug: "reschedule repeat moved", want: "reschedule/already-there"},
	{bug: "reschedule ignores From", want: "reschedule/moved"},
	{bug: "1970 is any time", want: "reschedule/moved"},
	{bug: "reschedule keeps Task.Due", want: "reschedule/sets-due"},
	{bug: "purge bound inclusive", want: "purge/before"},
	{bug: "purge takes the dead", want: "purge/what"},
	{bug: "purge limit ignored", want: "purge/limit"},
}

// pairDoubles are broken stores and indexes as the scheduler meets them; each is
// run through the case meant for it only.
var pairDoubles = []double{
	{bug: "cancel leaves the pending", want: "run/changes-honoured"},
	{bug: "retry due at once", want: "run/failures"},
	{bug: "crashes not counted", want: "tick/made-up-time"},
	{bug: "waiting hides all", want: "sweep/index-lost"},
	{bug: "release counts the attempt", want: "drain/gives-back"},
	{bug: "leases ignored", want: "crash/taken-over"},
	{bug: "token ignored", want: "crash/taken-over"},
	{bug: "done stays pending", want: "run/each-once"},
}

// heavy cases are run for a double only where they are meant for it.
var heavy = []string{
	"claim/large-bytes", "claim/one-winner", "claim/take-over-one-winner", "claim/against-settle",
	"contract/concurrent", "contract/large-batch", "contract/large-batch-store", "insert/one-bad-of-many",
	"take/no-id-twice", "watch/earlier-head", "watch/ends", "watch/joins", "watch/many",
	"insert/one-winner", "insert/replace-one-winner", "cancel/against-claim", "reschedule/against-claim",
}

func (d double) runs(name string) bool { return name == d.want || !slices.Contains(heavy, name) }

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
		New:      func(*testing.T) core.TimeIndex { return naive.NewIndex(bug) },
		Peer:     func(_ *testing.T, first core.TimeIndex) core.TimeIndex { return first.(*naive.Index).Peer() },
		Provides: conformance.IndexProvides{Taker: true, Watcher: true},
	}
}

func naiveStoreBackend(bug string, deletes bool) conformance.Store {
	return conformance.Store{
		New: func(*testing.T) core.Store {
			s := naive.NewStore(bug)
			s.Deletes = deletes
			return s
		},
		Provides: conformance.StoreProvides{Purger: true, KeepsFinished: !deletes},
	}
}

func TestARightNaiveIndexPasses(t *testing.T) { conformance.TestIndex(t, naiveIndexBackend("")) }

func TestARightNaiveStorePasses(t *testing.T) {
	t.Run("keeps-finished", func(t *testing.T) { conformance.TestStore(t, naiveStoreBackend("", false)) })
	t.Run("deletes-finished", func(t *testing.T) { conformance.TestStore(t, naiveStoreBackend("", true)) })
}

func TestEachBrokenIndexFailsTheCaseMeantForIt(t *testing.T) {
	run, caught := 0, 0
	for _, d := range indexDoubles {
		t.Run(d.bug, func(t *testing.T) {
			run++
			if d.check(t, conformance.IndexFailures(t, naiveIndexBackend(d.bug), d.runs)) {
				caught++
			}
		})
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("broken indexes: %d of %d", caught, run))
}

func TestEachBrokenStoreFailsTheCaseMeantForIt(t *testing.T) {
	run, caught := 0, 0
	for _, d := range storeDoubles {
		t.Run(d.bug+": "+d.want, func(t *testing.T) {
			run++
			if d.check(t, conformance.StoreFailures(t, naiveStoreBackend(d.bug, false), d.runs)) {
				caught++
			}
		})
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("broken stores: %d of %d", caught, run))
}

func naivePair(bug string) conformance.Pair {
	store, index := naiveStoreBackend(bug, false), naiveIndexBackend(bug)
	return conformance.Pair{Index: index.New, PeerIndex: index.Peer, Store: store.New}
}

func TestTheMainJobOnRightNaiveParts(t *testing.T) { conformance.TestScheduler(t, naivePair("")) }

func TestEachBrokenPairFailsTheCaseMeantForIt(t *testing.T) {
	run, caught := 0, 0
	for _, d := range pairDoubles {
		t.Run(d.bug, func(t *testing.T) {
			run++
			if d.check(t, conformance.PairFailures(t, naivePair(d.bug), func(name string) bool { return name == d.want })) {
				caught++
			}
		})
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("broken pairs: %d of %d", caught, run))
}

package history

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bugs of the suite's broken doubles that a history of one call after the
// other can see. It can't see what needs two calls at once, large batches, or a
// watch.
var (
	indexBugs = []string{
		"ids ignore case", "times in seconds", "times in local zone", "ctx ignored", "argument sorted",
		"add keeps the later", "add overwrites", "add refuses known ids", "due excludes now",
		"ties in any order", "ties without case", "limit ignored",
		"move without compare", "move puts what is missing", "move only later", "remove without compare",
		"take in any order", "take removes", "next counts what was taken", "next skips what is due", "next missing",
		"restore does nothing", "restore overwrites", "restore keeps the earlier", "restore keeps the later",
		"restore misses what was taken", "restore stops at a known id", "restore ignores ctx", "restore sorts its argument",
		"panics",
	}
	storeBugs = []string{
		"ids ignore case", "ids cut at 191 bytes", "times in seconds", "ctx ignored", "payload shared",
		"payload ends at NUL", "kind trimmed", "call ids ignore case", "insert repeat replaces",
		"insert repeat exists", "insert replaces live", "insert failures misplaced", "reuse keeps counts",
		"token restarts on reuse", "token from Call.Now on reuse", "first token from Call.Now", "verdicts sorted", "claim by Now, not DueBy",
		"claim ignores due", "claim repeat unknown", "held at now", "lease stolen at its end",
		"take-over by DueBy", "take-over by a clock", "take-over keeps token", "crashes not counted",
		"token ignored", "holder ignored", "holders ignore case", "extend shortens", "extend reads a clock",
		"extend repeat lost", "extend all or nothing", "settle refuses late", "settle repeat refused",
		"settle changes the settled", "settle of a cancelled one succeeds", "retry keeps Task.Due",
		"release counts the attempt", "release changes Task.Due", "pages skip equal dues", "bound inclusive",
		"waiting shows the held", "waiting hides the lapsed", "limit counts the held",
		"cancel changes the finished", "cancel repeat finished", "cancel by state alone",
		"cancel leaves the running", "cancel leaves the pending", "reschedule moves the running", "reschedule repeat moved",
		"reschedule ignores From", "1970 is any time", "reschedule keeps Task.Due",
		"purge bound inclusive", "purge takes the dead", "purge limit ignored",
		"retry due at once", "waiting hides all", "leases ignored", "done stays pending",
	}
)

func naiveIndex(bug string) conformance.Index {
	return conformance.Index{
		New:      func(*testing.T) core.TimeIndex { return naive.NewIndex(bug) },
		Peer:     func(_ *testing.T, first core.TimeIndex) core.TimeIndex { return first.(*naive.Index).Peer() },
		Provides: conformance.IndexProvides{Taker: true, Watcher: true, Restorer: true},
	}
}

func naiveStore(bug string, deletes bool) conformance.Store {
	return conformance.Store{
		New: func(*testing.T) core.Store {
			s := naive.NewStore(bug)
			s.Deletes = deletes
			return s
		},
		Provides: conformance.StoreProvides{Purger: true, KeepsFinished: !deletes},
	}
}

// hunt looks longer than for a backend that is thought to be right, and doesn't
// spend time on smaller histories.
var hunt = Options{Histories: 2_000, InProcess: true, shrink: time.Nanosecond}

func caught(t *testing.T, kind string, bugs []string, search func(t *testing.T, bug string) *failure) {
	n := 0
	for _, bug := range bugs {
		t.Run(bug, func(t *testing.T) {
			start := time.Now()
			f := search(t, bug)
			if assert.NotNil(t, f, "no random history shows the bug %q", bug) {
				n++
				t.Logf("found by history %d, after %s", f.played+1, time.Since(start))
			}
		})
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("broken %s by random histories: %d of %d", kind, n, len(bugs)))
	t.Logf("broken %s: %d of %d caught", kind, n, len(bugs))
}

func TestEachBrokenIndexIsFoundOut(t *testing.T) {
	caught(t, "indexes", indexBugs, func(t *testing.T, bug string) *failure { return searchIndex(t, naiveIndex(bug), seed(), hunt) })
}

func TestEachBrokenStoreIsFoundOut(t *testing.T) {
	caught(t, "stores", storeBugs, func(t *testing.T, bug string) *failure {
		return searchStore(t, naiveStore(bug, false), seed(), hunt)
	})
}

// tokenless goes by the holder alone, as if no claim were ever repeated after its
// grant was given back.
type tokenless struct {
	*naive.Store
	newest map[core.ID]map[string]int64
}

func (s *tokenless) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	got, err := s.Store.Claim(ctx, ids, lease)
	for _, c := range got {
		if c.Verdict == core.Granted {
			if s.newest[c.ID] == nil {
				s.newest[c.ID] = map[string]int64{}
			}
			s.newest[c.ID][c.Grant.Holder] = c.Grant.Token
		}
	}
	return got, err
}

func (s *tokenless) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	settlements = slices.Clone(settlements)
	for i, x := range settlements {
		if token, ok := s.newest[x.Grant.ID][x.Grant.Holder]; ok {
			settlements[i].Grant.Token = token
		}
	}
	return s.Store.Settle(ctx, now, settlements)
}

func TestAStoreWithoutTokensIsFoundOut(t *testing.T) {
	f := searchStore(t, conformance.Store{
		New: func(*testing.T) core.Store {
			return &tokenless{naive.NewStore(""), map[core.ID]map[string]int64{}}
		},
		Provides: conformance.StoreProvides{Purger: true, KeepsFinished: true},
	}, seed(), hunt)
	require.NotNil(t, f)
	t.Logf("found by history %d", f.played+1)
}

func TestRightPartsPass(t *testing.T) {
	o := Options{InProcess: true}
	t.Run("naive index", func(t *testing.T) { TestIndex(t, naiveIndex(""), o) })
	t.Run("naive store", func(t *testing.T) {
		TestStore(t, naiveStore("", false), o)
		TestLinearizable(t, naiveStore("", false), o)
	})
	t.Run("naive store that deletes", func(t *testing.T) {
		TestStore(t, naiveStore("", true), o)
		TestLinearizable(t, naiveStore("", true), o)
	})
	t.Run("heap", func(t *testing.T) {
		TestIndex(t, conformance.Index{
			New:      func(*testing.T) core.TimeIndex { return heapindex.New() },
			Provides: conformance.IndexProvides{Taker: true, Restorer: true},
		}, o)
	})
	for _, deletes := range []bool{false, true} {
		t.Run(fmt.Sprintf("memory, deletes %t", deletes), func(t *testing.T) {
			TestStore(t, conformance.Store{
				New:      func(*testing.T) core.Store { return claim.NewMemory(claim.MemoryOptions{DeleteFinished: deletes}) },
				Provides: conformance.StoreProvides{Purger: true, KeepsFinished: !deletes},
			}, o)
		})
	}
	t.Run("a claimer", func(t *testing.T) {
		TestClaimer(t, conformance.Claimer{
			New: func(*testing.T) core.Claimer { return claim.NewMemory(claim.MemoryOptions{}) },
			Put: func(t *testing.T, c core.Claimer, tasks []core.Task) {
				call := core.Call{ID: rand.Text(), Now: epoch}
				require.NoError(t, c.(core.Store).Insert(t.Context(), call, tasks))
			},
			Provides: conformance.ClaimerProvides{KeepsFinished: true},
		}, o)
	})
}

func TestAFailureIsMadeSmallAndSaysHowToPlayItAgain(t *testing.T) {
	o := Options{Histories: 1_000, InProcess: true}
	f := searchIndex(t, naiveIndex("add overwrites"), 1, o)
	require.NotNil(t, f)
	text := f.text("TestX/a b")
	t.Log(text)
	require.NotNil(t, f.small)
	assert.LessOrEqual(t, len(f.small.steps), 3, "an Add and a later Add are enough")
	assert.Contains(t, text, "-rapid.seed="+fmt.Sprint(f.seed))
	assert.Contains(t, text, "'^TestX$/^a b$'")
	assert.Contains(t, text, "got  [")

	again := searchIndex(t, naiveIndex("add overwrites"), f.seed, o)
	require.NotNil(t, again)
	assert.Zero(t, again.played, "the seed plays the failing history first")
	assert.Equal(t, f.small.steps, again.small.steps)
}

// As on a slow backend, where rapid has no time to make the history smaller.
func TestActionsThatDontMatterAreLeftOut(t *testing.T) {
	play := func(without []bool) *record {
		r := &record{actions: 50}
		if !without[7] && !without[30] {
			r.steps, r.broken = []string{"7", "30"}, "broken"
		}
		for i, out := range without {
			if !out && i != 7 && i != 30 {
				r.steps = append(r.steps, "other")
			}
		}
		return r
	}
	r := play(make([]bool, 50))
	r.again = play
	assert.Equal(t, []string{"7", "30"}, reduce(r, time.Now().Add(time.Minute)).steps)

	f := searchStore(t, naiveStore("token ignored", false), 3, Options{Histories: 1_000, InProcess: true})
	require.NotNil(t, f)
	t.Log(f.text(t.Name()))
	require.NotNil(t, f.small)
	assert.LessOrEqual(t, len(f.small.steps), 5, "an insert, two claims and a settle or the like are enough")
}

func TestAPanicIsAFailureWithItsStack(t *testing.T) {
	f := searchIndex(t, naiveIndex("panics"), 1, hunt)
	require.NotNil(t, f)
	text := f.text(t.Name())
	assert.Contains(t, text, "no such luck")
	assert.True(t, strings.Contains(text, "naive/index.go"), text)
}

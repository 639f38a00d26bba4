package conformance_test

import (
	"go/build"
	"slices"
	"strings"
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachCaseHasANameOfItsOwnAndARule(t *testing.T) {
	index, store, pair := conformance.CaseNames()
	for _, list := range [][]string{index, store, pair} {
		seen := map[string]bool{}
		for _, name := range list {
			assert.False(t, seen[name], "two cases are named %q", name)
			seen[name] = true
			assert.Regexp(t, `^[a-z]+/[a-z0-9-]+$`, name)
		}
	}
	for name, rule := range conformance.Rules() {
		assert.True(t, strings.HasSuffix(rule, "."), "%s: the rule is a sentence; got %q", name, rule)
		assert.NotContains(t, rule, "\n", "%s: an attribute is one line", name)
	}
}

func TestAwkwardIDsAreLegalAndDistinct(t *testing.T) {
	seen := map[core.ID]bool{}
	for _, id := range conformance.AwkwardIDs {
		require.NoError(t, id.Check())
		require.False(t, seen[id], "%q is there twice", id)
		seen[id] = true
	}
}

func TestDoublesNameRealCases(t *testing.T) {
	index, store, pair := conformance.CaseNames()
	for _, d := range indexDoubles {
		assert.Contains(t, index, d.want, d.bug)
	}
	for _, d := range storeDoubles {
		assert.Contains(t, store, d.want, d.bug)
	}
	for _, d := range pairDoubles {
		assert.Contains(t, pair, d.want, d.bug)
	}
	for _, name := range heavy {
		assert.Contains(t, append(index, store...), name)
	}
}

// Users of the suite link what it imports.
func TestTheSuiteImportsCoreAndTestifyOnly(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	require.NotEmpty(t, pkg.Imports)
	for _, path := range pkg.Imports {
		first, _, _ := strings.Cut(path, "/")
		ours := path == "github.com/dueclaim/dueclaim/core" || strings.HasPrefix(path, "github.com/stretchr/testify/") ||
			path == "github.com/dueclaim/dueclaim/conformance/internal/owner"
		assert.True(t, ours || !strings.Contains(first, "."), "conformance imports %s", path)
	}
}

func TestASkipNeedsARealNameAndAReason(t *testing.T) {
	index, _, _ := conformance.CaseNames()
	require.NoError(t, conformance.CheckSkips(map[string]string{"due/order": "no order here"}, index))
	require.ErrorContains(t, conformance.CheckSkips(map[string]string{"due/ordr": "no order here"}, index), `unknown case "due/ordr"`)
	require.ErrorContains(t, conformance.CheckSkips(map[string]string{"due/order": ""}, index), "has no reason")
}

func TestACaseIsLeftOutOnlyForASkipOrAMissingCapability(t *testing.T) {
	x := conformance.Index{Provides: conformance.IndexProvides{Taker: true}, Skip: map[string]string{"due/order": "no order here"}}
	assert.Empty(t, conformance.WhyNot(x, "due/limit", ""))
	assert.Empty(t, conformance.WhyNot(x, "take/next", "Taker"))
	assert.Empty(t, conformance.WhyNot(x, "no/watch", "!Watcher"))
	assert.Equal(t, "not provided: Watcher", conformance.WhyNot(x, "watch/ends", "Watcher"))
	assert.Equal(t, "not for a backend that provides Taker", conformance.WhyNot(x, "no/take", "!Taker"))
	assert.Equal(t, "skipped by the adapter: no order here", conformance.WhyNot(x, "due/order", ""))
}

func TestCapabilitiesAreCheckedBothWays(t *testing.T) {
	only := func(name string) bool { return name == "contract/provides" }
	less := naiveIndexBackend("")
	less.Provides.Watcher = false
	assert.Contains(t, conformance.IndexFailures(t, less, only), "contract/provides", "a Watcher that isn't declared")
	more := naiveIndexBackend("")
	more.New = func(*testing.T) core.TimeIndex { return indexOnly{naive.NewIndex("")} }
	more.Peer = nil
	assert.Contains(t, conformance.IndexFailures(t, more, only), "contract/provides", "a Taker that is declared and not there")

	store := naiveStoreBackend("", false)
	store.Provides.KeepsFinished = false
	assert.Contains(t, conformance.StoreFailures(t, store, only), "contract/provides", "kept rows that aren't declared")
	store = naiveStoreBackend("", true)
	store.Provides.KeepsFinished = true
	assert.Contains(t, conformance.StoreFailures(t, store, only), "contract/provides", "deleted rows that are declared kept")
	store = naiveStoreBackend("", false)
	store.Provides.Purger = false
	assert.Contains(t, conformance.StoreFailures(t, store, only), "contract/provides", "a Purger that isn't declared")
}

func TestAHangingBackendIsAbandonedWithTheStacks(t *testing.T) {
	text := conformance.HangingIndexFailure(t, naiveIndexBackend("hangs"), "contract/fresh-is-empty")
	assert.Contains(t, text, "the case hangs")
	assert.Contains(t, text, "naive.(*Index).Due", "the stacks show where")
	assert.Contains(t, text, "broken rule: A new index has no entries")
}

func TestAHangingCaseLetsGoOfItsLock(t *testing.T) {
	store := naiveStoreBackend("waits for a lock for good", false)
	lock, unlocked := store.Lock, make(chan struct{})
	store.Lock = func(t *testing.T, s core.Store, id core.ID) func() {
		unlock := lock(t, s, id)
		return func() {
			unlock()
			close(unlocked)
		}
	}
	text := conformance.HangingStoreFailure(t, store, "lock/claim")
	assert.Contains(t, text, "the case hangs")
	_, own, _ := strings.Cut(text, "its own goroutine")
	first, _, _ := strings.Cut(own, "\n\n")
	assert.Contains(t, first, "naive.(*Store).Claim", "the stack of the case comes first")
	<-unlocked
}

func TestAPanicFailsItsCaseOnly(t *testing.T) {
	failures := conformance.IndexFailures(t, naiveIndexBackend("panics"), func(name string) bool {
		return name == "contract/fresh-is-empty" || name == "take/next"
	})
	assert.Len(t, failures, 1)
	assert.Contains(t, failures["contract/fresh-is-empty"], "the case panics: no such luck")
}

func TestAPanicInAnyGoroutineOfACaseFailsItsCaseOnly(t *testing.T) {
	for bug, want := range map[string][]string{
		"move panics":  {"contract/concurrent", "move/one-winner"},
		"watch panics": {"watch/ends", "watch/done-ctx", "watch/joins", "break/watch"},
	} {
		failures := conformance.IndexFailures(t, naiveIndexBackend(bug), func(name string) bool { return slices.Contains(want, name) })
		for _, name := range want {
			assert.Contains(t, failures[name], "the case panics: no such luck", "%s: %s", bug, name)
		}
	}
	more := naiveIndexBackend("")
	more.New = func(*testing.T) core.TimeIndex { return indexOnly{naive.NewIndex("")} }
	more.Peer, more.Break = nil, nil
	failures := conformance.IndexFailures(t, more, func(name string) bool { return name == "take/no-id-twice" || name == "watch/ends" })
	assert.Contains(t, failures["take/no-id-twice"], "missing method Take", "declared and not there")
	assert.Contains(t, failures["watch/ends"], "missing method Watch", "declared and not there")
}

// indexOnly hides the optional capabilities.
type indexOnly struct{ core.TimeIndex }

package conformance_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFailureSaysFirstWhatWasBrokenThenWhatWasWantedAndWhatCame(t *testing.T) {
	for _, c := range []struct{ suite, bug, name, want string }{
		{"index", "limit ignored", "due/limit", "broken rule: Due returns up to limit entries, the first in order.\n" +
			"limit 1: got 50 entries, want 1; after 1 that are right:\n  want: none\n  got:  \"n-00001\" due 2030-"},
		{"store", "held at now", "claim/never-before-lease-end", "broken rule: A running task may be granted again only when its lease ended before Now: at its very end it is Held, a millisecond later over.\n" +
			"at 2030-01-02T03:04:05.678Z: At of \"a\":\n  want: \"2030-01-02T03:04:06.678Z\"\n  got:  \"2030-01-02T03:04:05.678Z\"\n  at claim_grants.go:"},
		{"store", "empty batch fails", "contract/empty-batch", "broken rule: An empty slice is a no-op that returns nil.\n" +
			"Claim: got error: nothing to do\n  at claim_basics.go:"},
	} {
		only := func(name string) bool { return name == c.name }
		var text string
		if c.suite == "index" {
			text = conformance.IndexFailures(t, naiveIndexBackend(c.bug), only)[c.name]
		} else {
			text = conformance.StoreFailures(t, naiveStoreBackend(c.bug, false), only)[c.name]
		}
		assert.True(t, strings.HasPrefix(text, c.want), "got:\n%s\nwant it to begin with:\n%s", text, c.want)
		assert.NotContains(t, text, "Error Trace")
		assert.NotContains(t, text, "runner.go")
		lines := strings.Split(text, "\n")
		assert.Less(t, len(lines), 30, text)
		t.Log(text)
	}
}

func TestTheWatchdogCoversNewAndPeer(t *testing.T) {
	hang := func() { select {} }
	backend := naiveIndexBackend("")
	backend.New = func(*testing.T) core.TimeIndex { hang(); return nil }
	text := conformance.HangingIndexFailure(t, backend, "due/limit")
	assert.Contains(t, text, "the hook conformance.Index.New hangs: not over after")

	store := naiveStoreBackend("", false)
	store.Peer = func(*testing.T, core.Store) core.Store { hang(); return nil }
	text = conformance.HangingStoreFailure(t, store, "claim/gone")
	assert.Contains(t, text, "the hook conformance.Store.Peer hangs: not over after")
	_, own, _ := strings.Cut(text, "its own goroutines")
	first, _, _ := strings.Cut(own, "\n\n")
	assert.Contains(t, first, "TestTheWatchdogCoversNewAndPeer", "the stack of the case comes first")
}

func TestAPanicInAHookIsItsCases(t *testing.T) {
	backend := naiveIndexBackend("")
	backend.New = func(*testing.T) core.TimeIndex { panic("no server") }
	text := conformance.IndexFailures(t, backend, func(name string) bool { return name == "due/limit" })["due/limit"]
	assert.Contains(t, text, "\nthe hook conformance.Index.New panics: no server\n")
	backend = naiveIndexBackend("")
	backend.Peer = func(*testing.T, core.TimeIndex) core.TimeIndex { return (*naive.Index)(nil) }
	text = conformance.IndexFailures(t, backend, func(name string) bool { return name == "due/limit" })["due/limit"]
	assert.Contains(t, text, "\nconformance.Index.Peer returned nil")
}

// Nobody but an adapter can recover what happens in a goroutine of its own. The test
// process ends, in whichever case runs by then; the trace says whose the goroutine is.
func TestAPanicInAnAdaptersGoroutineNamesItsCase(t *testing.T) {
	const played = "DUECLAIM_BURST"
	if os.Getenv(played) != "" {
		backend := naiveIndexBackend("")
		news := 0
		over := make(chan struct{})
		backend.New = func(t *testing.T) core.TimeIndex {
			news++
			if news == 1 {
				go func() { <-over; panic("burst") }()
			} else {
				close(over)
				select {}
			}
			return naive.NewIndex("")
		}
		conformance.TestIndex(t, backend)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	play := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$/^(contract|due)$/^(fresh-is-empty|limit)$", "-test.v", "-test.timeout=50s")
	play.Env = append(os.Environ(), played+"=1")
	out, err := play.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "panic: burst")
	assert.Regexp(t, `goroutine \d+ \[running labels:\{"dueclaim.case": "`+t.Name()+`/contract/fresh-is-empty"\}\]`, string(out))
}

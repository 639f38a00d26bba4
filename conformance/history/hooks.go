package history

import (
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

// attributes are those by which the table of backends and rules finds a test.
func attributes(t *testing.T, name, rule string) {
	t.Attr("dueclaim.group", "history")
	t.Attr("dueclaim.case", name)
	t.Attr("dueclaim.rule", rule)
}

// returned is what a hook returned, which must not be nil.
func returned[T any](t *testing.T, hook string, handle T) T {
	t.Helper()
	require.NotNil(t, handle, "%s returned nil", hook)
	return handle
}

func indexHandles(t *testing.T, index conformance.Index) (first, peer core.TimeIndex) {
	first = returned(t, "conformance.Index.New", index.New(t))
	if index.Provides.Taker {
		require.Implements(t, (*core.Taker)(nil), first, "conformance.Index.Provides.Taker is set")
	}
	if index.Provides.Restorer {
		require.Implements(t, (*core.Restorer)(nil), first, "conformance.Index.Provides.Restorer is set")
	}
	if index.Peer == nil {
		return first, first
	}
	return first, returned(t, "conformance.Index.Peer", index.Peer(t, first))
}

// storeHandles returns n of them.
func storeHandles(t *testing.T, store conformance.Store, n int) []core.Store {
	first := returned(t, "conformance.Store.New", store.New(t))
	if store.Provides.Purger {
		require.Implements(t, (*core.Purger)(nil), first, "conformance.Store.Provides.Purger is set")
	}
	all := []core.Store{first}
	for len(all) < n {
		if store.Peer == nil {
			all = append(all, first)
		} else {
			all = append(all, returned(t, "conformance.Store.Peer", store.Peer(t, first)))
		}
	}
	return all
}

func claimerHandles(t *testing.T, claimer conformance.Claimer) (first, peer core.Claimer) {
	first = returned(t, "conformance.Claimer.New", claimer.New(t))
	if claimer.Peer == nil {
		return first, first
	}
	return first, returned(t, "conformance.Claimer.Peer", claimer.Peer(t, first))
}

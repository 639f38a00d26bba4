package heapindex_test

import (
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func TestConformance(t *testing.T) {
	t.Attr("dueclaim.backend", "index:heap")
	conformance.TestIndex(t, conformance.Index{
		New:      func(*testing.T) core.TimeIndex { return heapindex.New() },
		Provides: conformance.IndexProvides{Taker: true, Watcher: true, Restorer: true, Lister: true},
	})
}

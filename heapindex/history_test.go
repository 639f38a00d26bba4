package heapindex_test

import (
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func TestRandomHistories(t *testing.T) {
	t.Attr("dueclaim.backend", "index:heap")
	history.TestIndex(t, conformance.Index{
		New:      func(*testing.T) core.TimeIndex { return heapindex.New() },
		Provides: conformance.IndexProvides{Taker: true, Restorer: true, Lister: true},
	}, history.Options{InProcess: true})
}

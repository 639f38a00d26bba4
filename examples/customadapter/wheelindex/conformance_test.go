package wheelindex_test

import (
	"testing"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/customadapter/wheelindex"
)

func TestConformance(t *testing.T) {
	index := conformance.Index{
		New:      func(*testing.T) core.TimeIndex { return wheelindex.New() },
		Provides: conformance.IndexProvides{Taker: true, Watcher: true},
	}
	conformance.TestIndex(t, index)
	history.TestIndex(t, index, history.Options{InProcess: true})
	conformance.TestScheduler(t, conformance.Pair{
		Index: index.New,
		Store: func(*testing.T) core.Store { return claim.NewMemory(claim.MemoryOptions{}) },
	})
}

func BenchmarkIndex(b *testing.B) {
	conformance.BenchmarkIndex(b, func(*testing.B) core.TimeIndex { return wheelindex.New() })
}

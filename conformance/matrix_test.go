package conformance_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/stretchr/testify/require"
)

func TestMemoryKeepsTheContractOfAStore(t *testing.T) {
	for name, options := range map[string]claim.MemoryOptions{
		"keeps-finished":   {},
		"deletes-finished": {DeleteFinished: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Attr("dueclaim.backend", "store:memory")
			conformance.TestStore(t, conformance.Store{
				New: func(*testing.T) core.Store { return claim.NewMemory(options) },
				Provides: conformance.StoreProvides{
					Purger: true, KeepsFinished: !options.DeleteFinished,
				},
			})
		})
	}
}

func TestSchedulerDoesTheMainJob(t *testing.T) {
	t.Parallel()
	newHeap := func(*testing.T) core.TimeIndex { return heapindex.New() }
	memory := func(*testing.T) core.Store { return claim.NewMemory(claim.MemoryOptions{}) }
	t.Run("one heap shared", func(t *testing.T) {
		t.Parallel()
		conformance.TestScheduler(t, conformance.Pair{Name: "heap+memory", Index: newHeap, Store: memory})
	})
	t.Run("a heap a process", func(t *testing.T) {
		t.Parallel()
		conformance.TestScheduler(t, conformance.Pair{
			Name: "heap+memory", Index: newHeap, Store: memory,
			PeerIndex: func(t *testing.T, _ core.TimeIndex) core.TimeIndex { return newHeap(t) },
		})
	})
}

// claimerOnly is a store of which only the Claimer is seen, as a table is that
// its users fill.
type claimerOnly struct {
	core.Claimer
	rows *claim.Memory
}

func TestMemoryKeepsTheContractOfAClaimer(t *testing.T) {
	conformance.TestClaimer(t, conformance.Claimer{
		New: func(*testing.T) core.Claimer {
			m := claim.NewMemory(claim.MemoryOptions{})
			return claimerOnly{m, m}
		},
		Put: func(t *testing.T, c core.Claimer, tasks []core.Task) {
			require.NoError(t, c.(claimerOnly).rows.Insert(t.Context(), core.Call{ID: rand.Text(), Now: time.Now()}, tasks))
		},
		Provides: conformance.ClaimerProvides{KeepsFinished: true},
	})
}

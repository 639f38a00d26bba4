package claim_test

import (
	"testing"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
)

func TestMemoryAnswersRandomHistories(t *testing.T) {
	for name, options := range map[string]claim.MemoryOptions{
		"keeps-finished":   {},
		"deletes-finished": {DeleteFinished: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Attr("dueclaim.backend", "store:memory")
			store := conformance.Store{
				New:      func(*testing.T) core.Store { return claim.NewMemory(options) },
				Provides: conformance.StoreProvides{Purger: true, KeepsFinished: !options.DeleteFinished},
			}
			history.TestStore(t, store, history.Options{InProcess: true})
			history.TestLinearizable(t, store, history.Options{InProcess: true})
		})
	}
}

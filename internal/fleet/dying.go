package fleet

import (
	"context"
	"os"
	"syscall"

	"github.com/dueclaim/dueclaim/core"
)

// dying is the store of a worker that is to die in its first claim: what the index
// has handed out never gets to the store.
type dying struct {
	core.Store
	core.TimeSource
	reporter *reporter
}

// Claim kills the process, as kill -9 from outside would, and says so before.
func (d dying) Claim(_ context.Context, ids []core.ID, _ core.Lease) ([]core.Claimed, error) {
	d.reporter.say(Event{What: Dying, N: len(ids)})
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until that has come
}

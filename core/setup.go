package core

import (
	"context"
	"sync"
)

// SetupChecker is an optional capability of a TimeIndex or a Claimer: to say at
// the start what in its backend's set-up endangers what dueclaim promises. Run asks
// once and logs each warning.
type SetupChecker interface {
	// CheckSetup returns a sentence for each setting that is dangerous, or that could
	// not be read: what it is, what may happen, and what to do. An error says that
	// the backend could not be asked.
	CheckSetup(ctx context.Context) (warnings []string, err error)
}

// checkSetup asks both parts side by side, each as often as it takes, and logs what
// they say: an index that is away for good keeps nobody from the store's warnings.
func (e *engine) checkSetup(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	if c, ok := e.idx.(SetupChecker); ok {
		both.Go(func() { e.checkPart(ctx, "index", c) })
	}
	if c, ok := e.store.(SetupChecker); ok {
		both.Go(func() { e.checkPart(ctx, "store", c) })
	}
}

func (e *engine) checkPart(ctx context.Context, name string, c SetupChecker) {
	down := backoff{least: e.opt.Poll, most: setupPause}
	for ctx.Err() == nil {
		var warnings []string
		err := e.call.once(ctx, func(ctx context.Context) (err error) {
			warnings, err = c.CheckSetup(ctx)
			return err
		})
		if err == nil {
			for _, w := range warnings {
				e.log.Warn("dueclaim: "+name+": set-up", "warning", w)
			}
			return
		}
		e.log.Debug("dueclaim: the "+name+"'s set-up can't be checked yet", "err", err)
		await(ctx, nil, down.failed())
	}
}

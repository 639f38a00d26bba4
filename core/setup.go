package core

import "context"

// SetupChecker is an optional capability of a TimeIndex or a Claimer: to say at
// the start what in its backend's set-up endangers what dueclaim promises. Run asks
// once and logs each warning.
type SetupChecker interface {
	// CheckSetup returns a sentence for each setting that is dangerous, or that could
	// not be read: what it is, what may happen, and what to do. An error says that
	// the backend could not be asked.
	CheckSetup(ctx context.Context) (warnings []string, err error)
}

// checkSetup asks both parts, as often as it takes, and logs what they say.
func (e *engine) checkSetup(ctx context.Context) {
	for _, part := range []struct {
		name string
		any  any
	}{{"index", e.idx}, {"store", e.store}} {
		c, ok := part.any.(SetupChecker)
		if !ok {
			continue
		}
		var warnings []string
		down := backoff{least: e.opt.Poll, most: setupPause}
		for ctx.Err() == nil {
			err := e.call.once(ctx, func(ctx context.Context) (err error) {
				warnings, err = c.CheckSetup(ctx)
				return err
			})
			if err == nil {
				break
			}
			e.log.Debug("dueclaim: the "+part.name+"'s set-up can't be checked yet", "err", err)
			await(ctx, nil, down.failed())
		}
		for _, w := range warnings {
			e.log.Warn("dueclaim: "+part.name+": set-up", "warning", w)
		}
	}
}

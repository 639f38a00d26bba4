package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// midway makes a call in full, which must succeed, to learn how long it takes,
// and then one of the same size whose ctx is cancelled halfway through that. The
// second must return soon after, with success or with an error of the whole call.
// The caller then repeats it and looks whether all of it took effect.
func (c *caseT) midway(method string, whole, cut func(ctx context.Context) error) {
	start := time.Now()
	if err := c.insistFree(func() error { return whole(c.ctx) }); err != nil {
		c.Errorf("%s of a whole batch: got error %v", method, err)
		c.FailNow()
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	var ended time.Time
	timer := time.AfterFunc(time.Since(start)/2, func() { ended = time.Now(); cancel() })
	err := cut(ctx)
	if timer.Stop() {
		ended = time.Now() // it was quicker than the one before
	} else {
		<-ctx.Done() // the other goroutine has set ended
	}
	if late := time.Since(ended); late > c.patience/2 {
		c.Errorf("%s: got a return %s after its ctx was cancelled, want it soon", method, late)
	}
	var batch *core.BatchError
	if errors.As(err, &batch) && !errors.Is(err, core.ErrBusy) {
		c.Errorf("%s, cancelled in the middle: got verdicts on its items (%v), want an error of the whole call", method, err)
	}
}

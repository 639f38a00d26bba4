package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

// attempt is one call of a method, by the method's name.
type attempt struct {
	method string
	call   func(ctx context.Context) error
}

// wantErrors makes each call while the backend is away and fails where one
// returns no error, a verdict on its items, or nothing for too long.
func (c *caseT) wantErrors(attempts []attempt) {
	for _, a := range attempts {
		err := c.soon(a.method, a.call)
		var batch *core.BatchError
		switch {
		case err == nil:
			c.Errorf("%s: got no error while the backend was away, want one", a.method)
		case errors.As(err, &batch):
			c.Errorf("%s: got verdicts on its items while the backend was away, want an error of the whole call: %v", a.method, err)
		}
	}
}

// soon makes a call without a deadline of its own, which must return in bounded
// time all the same, and returns its error.
func (c *caseT) soon(method string, call func(ctx context.Context) error) error {
	start := time.Now()
	err := call(c.ctx)
	if took := time.Since(start); took > c.patience {
		c.Errorf("%s: the call took %s while the backend was away, want an error soon", method, took)
	}
	return err
}

// wantInTime makes each call with a ctx that ends soon.
func (c *caseT) wantInTime(attempts []attempt) {
	for _, a := range attempts {
		if err := c.within(a.call); err == nil {
			c.Errorf("%s: got no error while the backend was away, want one", a.method)
		}
	}
}

// wantSuccess repeats each call until its outcome is known, which must be that
// all of it took effect.
func (c *caseT) wantSuccess(attempts []attempt) {
	for _, a := range attempts {
		require.NoError(c, c.insistFree(func() error { return a.call(c.ctx) }), "%s, with the same arguments after the backend was back", a.method)
	}
}

// tolerated turns a repeated Done that found its task deleted into a success: a
// store that deletes done tasks can't tell.
func tolerated(err error, keeps bool) error {
	if !keeps && errors.Is(err, core.ErrLeaseLost) {
		return nil
	}
	return err
}

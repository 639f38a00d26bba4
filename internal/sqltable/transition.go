package sqltable

import (
	"context"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// CheckTransition returns nil or an error that says why a Transition can't be
// made.
func (e *Engine) CheckTransition(job *core.Job) error {
	switch {
	case e.mode != claim.Transition:
		return fmt.Errorf("%w: the table is in mode %s: commit SettleTx with your writes and return core.Settled", core.ErrInvalid, e.mode)
	case job == nil:
		return fmt.Errorf("%w: the job is nil", core.ErrInvalid)
	}
	return e.CheckID(job.Task.ID)
}

// Step makes the step from pending to done in a transaction of conn, if the row
// still stands there and is due at now, and tells whether it did. now is the present, not
// the claim's: the row may have been put off since.
func (e *Engine) Step(ctx context.Context, conn Conn, id core.ID, now time.Time) (bool, error) {
	t := &e.table
	done, err := conn.Change(ctx, Change{
		Items: []Item{{ID: id}},
		Guard: and(e.is(t.State.Pending), e.dueBy(now), e.where()),
		Set:   append([]Assign{{t.State.Name, Expr{Value{t.State.Done}}}}, e.touch(now)...),
		Exact: true,
	})
	if err != nil {
		return false, err
	}
	return done.Changed[0], nil
}

package pgclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dueclaim/dueclaim/core"
)

// SettleTx is Settle as a part of the caller's transaction, which makes the
// completion and the handler's own writes one; see Store's. It is for the modes
// claim.Full and claim.StatusUpdated: where the user's own statement changed the
// row meanwhile, or an earlier call settled it, be it under the same grant, it fails
// with core.ErrLeaseLost, and the transaction is to be rolled back. In mode
// claim.Transition it fails with core.ErrInvalid; use Transition.
func (t *Table) SettleTx(ctx context.Context, tx pgx.Tx, now time.Time, settlements []core.Settlement) error {
	return t.settleInTx(ctx, pgxRunner{tx, t.modes.override()}, now, settlements)
}

// SettleSQLTx is SettleTx for a *sql.Tx of pgx/stdlib.
func (t *Table) SettleSQLTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	return t.settleInTx(ctx, sqlRunner{tx, t.modes.override()}, now, settlements)
}

func (t *Table) settleInTx(ctx context.Context, r runner, now time.Time, settlements []core.Settlement) error {
	const op = "settle in a transaction"
	if err := ctx.Err(); err != nil {
		return t.fail(op, err)
	}
	good, places, failed := siftSettlements(settlements)
	err := t.engine.SettleTx(ctx, tableConn{t, r, true}, now, good)
	refused, ok := errors.AsType[*core.BatchError](err)
	switch {
	case ok:
		failed = append(failed, placed(refused.Items, places)...)
	case err != nil:
		return t.fail(op, err)
	}
	return batchError(failed)
}

// Transition makes the step of mode claim.Transition: in one READ COMMITTED
// transaction, the row of job goes from State.Pending to State.Done and f writes
// what goes with it. f is not called, and nil is returned, when the row isn't
// there any more, isn't in that state or was put off: somebody else made the step,
// or yours did something else with it. When f fails nothing is written, and its
// error is returned as it is, for the handler to return. The row stays locked until
// f is done.
func (t *Table) Transition(ctx context.Context, job *core.Job, f func(tx pgx.Tx) error) error {
	if t.pool == nil {
		return t.fail("transition", fmt.Errorf("%w: the table is on a *sql.DB; want TransitionSQL", core.ErrInvalid))
	}
	return t.transition(ctx, job, func(r runner) error { return f(r.(pgxRunner).q.(pgx.Tx)) })
}

// TransitionSQL is Transition for a Table of NewSQLTable.
func (t *Table) TransitionSQL(ctx context.Context, job *core.Job, f func(tx *sql.Tx) error) error {
	if t.db == nil {
		return t.fail("transition", fmt.Errorf("%w: the table is on a *pgxpool.Pool; want Transition", core.ErrInvalid))
	}
	return t.transition(ctx, job, func(r runner) error { return f(r.(sqlRunner).q.(*sql.Tx)) })
}

func (t *Table) transition(ctx context.Context, job *core.Job, f func(runner) error) error {
	if err := t.engine.CheckTransition(job); err != nil {
		return t.fail("transition", err)
	}
	var own error
	err := t.inTx(ctx, func(ctx context.Context, r runner) error {
		made, err := t.engine.Step(ctx, tableConn{t, r, true}, job.Task.ID, job.Now())
		if err != nil || !made {
			return err
		}
		own = f(r)
		return own
	})
	if own != nil {
		return own
	}
	return t.fail("transition", err)
}

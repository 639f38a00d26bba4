package sqliteclaim

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// outcome names the call in an error of unknown outcome, and leaves refusals as they
// are.
func (t *Table) outcome(call string, err error) error {
	var refused *core.BatchError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return t.wrap(call, err)
}

// Claim implements [core.Claimer].
func (t *Table) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	claimed, err := t.engine.Claim(ctx, pooled{t}, ids, lease)
	return claimed, t.outcome("claim", err)
}

// Extend implements [core.Claimer].
func (t *Table) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return t.outcome("extend", t.engine.Extend(ctx, pooled{t}, grants, until))
}

// Settle implements [core.Claimer].
func (t *Table) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return t.outcome("settle", t.engine.Settle(ctx, pooled{t}, now, settlements))
}

// Waiting implements [core.Claimer].
func (t *Table) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	entries, err := t.engine.Waiting(ctx, pooled{t}, now, after, before, limit)
	return entries, t.outcome("waiting", err)
}

// Undated implements [core.Undated]: it tells whether the index alone holds
// back-offs.
func (t *Table) Undated() bool { return t.engine.Undated() }

// NoAhead implements core.NoAhead: it tells whether a row's back-off may stand where a
// grant can't tell it.
func (t *Table) NoAhead() bool { return t.engine.NoAhead() }

// CheckID implements [core.IDChecker].
func (t *Table) CheckID(id core.ID) error { return t.engine.CheckID(id) }

// LeaseFor implements core.FixedLease: the length of the table's leases in mode
// StatusUpdated, else 0.
func (t *Table) LeaseFor() time.Duration { return t.def.LeaseFor }

// SettleTx is Settle inside a transaction of the caller's: what the task did in
// that transaction and its completion are committed together, or neither; see
// [Store.SettleTx], also for repeats. It is for the modes Full and StatusUpdated; in
// mode Transition it fails with ErrInvalid: use Transition.
func (t *Table) SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	good, places, failed := checkSettlements(settlements)
	q := newOnSQL(tx)
	defer q.close()
	err := t.engine.SettleTx(ctx, inTx{t, q}, now, good)
	var refused *core.BatchError
	if err != nil && !errors.As(err, &refused) {
		return t.wrap("settle", err)
	}
	if refused != nil {
		failed = appendErrors(failed, 0, refused.Items, places...)
	}
	return batchError(failed)
}

// Transition makes the step of mode Transition: in one transaction, the row of job
// goes from State.Pending to State.Done and f writes what goes with it. f is not
// called, and nil is returned, when the row isn't there any more, isn't in that
// state or is due later by now: somebody else made the step, or yours did
// something else with it. When f fails nothing is written, and its error is
// returned as it is, for the handler to return.
//
// The file has one writer, and the transaction is open for as long as f runs: it
// should only write.
func (t *Table) Transition(ctx context.Context, job *core.Job, f func(tx *sql.Tx) error) error {
	if err := t.engine.CheckTransition(job); err != nil {
		return t.wrap("transition", err)
	}
	tx, err := t.handle().BeginTx(ctx, nil)
	if err != nil {
		return t.wrap("transition", err)
	}
	defer func() { _ = tx.Rollback() }() // after a Commit it does nothing
	q := newOnSQL(tx)
	defer q.close()
	made, err := t.engine.Step(ctx, inTx{t, q}, job.Task.ID, job.Now())
	if err != nil {
		return t.wrap("transition", err)
	}
	if !made {
		return nil
	}
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return t.wrap("transition", err)
	}
	return nil
}

var (
	_ core.Claimer    = (*Table)(nil)
	_ core.Undated    = (*Table)(nil)
	_ core.NoAhead    = (*Table)(nil)
	_ core.IDChecker  = (*Table)(nil)
	_ core.FixedLease = (*Table)(nil)
)

package mysqlclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.Claimer    = (*Table)(nil)
	_ core.TimeSource = (*Table)(nil)
	_ core.Undated    = (*Table)(nil)
	_ core.NoAhead    = (*Table)(nil)
	_ core.IDChecker  = (*Table)(nil)
	_ core.FixedLease = (*Table)(nil)
)

// Claim implements core.Claimer: in mode Full one UPDATE and one read-back for
// each 500 ids; in mode StatusUpdated an UPDATE an id, a few at a time, and a
// read-back; in mode Transition a SELECT. A row that another transaction has
// locked is passed over.
func (t *Table) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	conn := t.pooled()
	claimed, err := t.engine.Claim(ctx, conn, ids, lease)
	if err != nil {
		return nil, t.fail("claim", conn.effect.prove(err))
	}
	return claimed, nil
}

// Extend implements core.Claimer.
func (t *Table) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	conn := t.pooled()
	return t.fail("extend", conn.effect.prove(t.engine.Extend(ctx, conn, grants, until)))
}

// Settle implements core.Claimer.
func (t *Table) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	conn := t.pooled()
	return t.fail("settle", conn.effect.prove(t.engine.Settle(ctx, conn, now, settlements)))
}

// Waiting implements core.Claimer. It wants the index that Verify asks for.
func (t *Table) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	entries, err := t.engine.Waiting(ctx, t.pooled(), now, after, before, limit)
	return entries, t.fail("waiting", err)
}

// Now returns the server's clock, in microseconds.
func (t *Table) Now(ctx context.Context) (time.Time, error) {
	var us int64
	if err := one(ctx, t.db, clockQuery, nil, &us); err != nil {
		return time.Time{}, t.fail("now", err)
	}
	return time.UnixMicro(us).UTC(), nil
}

// Undated implements core.Undated: it tells whether the index alone holds
// back-offs.
func (t *Table) Undated() bool { return t.engine.Undated() }

// NoAhead implements core.NoAhead: it tells whether a row's back-off may stand where a
// grant can't tell it.
func (t *Table) NoAhead() bool { return t.engine.NoAhead() }

// CheckID implements core.IDChecker: it tells whether an id is one of the id
// column's kind, in its canonical form.
func (t *Table) CheckID(id core.ID) error { return t.engine.CheckID(id) }

// LeaseFor implements core.FixedLease: the length of the table's leases in mode
// StatusUpdated, else 0.
func (t *Table) LeaseFor() time.Duration { return t.def.LeaseFor }

// SettleTx is Settle within the caller's transaction: the completion and the
// caller's own changes are committed together or not at all. core.ErrLeaseLost
// comes in a *core.BatchError: roll back, the row is somebody else's, or an earlier
// call settled it, be it under the same grant. It is for the modes Full and
// StatusUpdated; in mode Transition it fails with core.ErrInvalid: use Transition.
// What Store.SettleTx says about locks holds here too: make it the last statement.
func (t *Table) SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	const op = "settle in a transaction"
	valid, failed := checkSettlements(settlements)
	batch := make([]core.Settlement, len(valid))
	for i, it := range valid {
		batch[i] = it.v
	}
	err := t.engine.SettleTx(ctx, inTx{t, tx}, core.FloorMilli(now), batch)
	var refused *core.BatchError
	switch {
	case errors.As(err, &refused):
		for _, e := range refused.Items {
			failed.add(valid[e.Index].at, e.ID, e.Err)
		}
	case err != nil:
		return t.failTx(op, err)
	}
	return failed.err()
}

// Transition makes the step of mode Transition: in one transaction the row of job
// goes from State.Pending to State.Done, and f makes the writes that go with it.
// Where the row has left State.Pending, or was put off, f is not called and
// nil is returned: somebody else made the step, or your own code did something
// else with the row. When f fails, nothing is written, and its error is returned
// as it is, for the handler to return.
//
// The row is locked while f runs; it should do no more than write. Any other error
// may be returned by the handler as well: the next attempt finds out what became
// of the step.
func (t *Table) Transition(ctx context.Context, job *core.Job, f func(tx *sql.Tx) error) error {
	const op = "transition"
	if err := t.engine.CheckTransition(job); err != nil {
		return t.fail(op, err)
	}
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return t.fail(op, err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	made, err := t.engine.Step(ctx, inTx{t, tx}, job.Task.ID, job.Now())
	if err != nil {
		return t.failTx(op, err)
	}
	if !made {
		return nil
	}
	if err := f(tx); err != nil {
		return err
	}
	return t.fail(op, tx.Commit())
}

// fail wraps an error of unknown outcome once, with what was being done and what
// to do about it. Refusals stay as they are.
func (t *Table) fail(op string, err error) error {
	var refused *core.BatchError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	switch number(err) {
	case errNoTable, errNoColumn:
		return fmt.Errorf("mysqlclaim: %s: table %s is not as it is mapped, Verify says how: %w", op, t.def.Name, err)
	}
	return fmt.Errorf("mysqlclaim: %s: table %s: %s%w", op, t.def.Name, hint(err), err)
}

// failTx is fail for statements in a transaction.
func (t *Table) failTx(op string, err error) error {
	if mustRollBack(err) {
		return fmt.Errorf("mysqlclaim: %s: table %s: %s%w", op, t.def.Name, rollBack, err)
	}
	return t.fail(op, err)
}

package mysqlclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// InsertTx is Insert within the caller's transaction: the tasks exist if it
// commits. Expected refusals (core.ErrExists) come in a *core.BatchError and
// leave the transaction as it can be committed; an invalid task is refused in
// the same way. After any other error the caller must roll back: MySQL undoes
// only the last statement after a lock wait time-out (1205), but the whole
// transaction after a lost deadlock (1213).
//
// Make it one of the last statements: other producers of the same ids wait for
// the commit. Ids that are live are not locked, but for those that became live
// after the transaction's snapshot (REPEATABLE READ) or while it runs; under
// SERIALIZABLE every read locks. Under REPEATABLE READ a task that was live in
// the transaction's snapshot counts as live. call.ID must be unique to this
// transaction.
//
// A repeat with the same call.ID, after a commit whose outcome was unknown, is
// recognised: it changes nothing and is no error. The repeat's other writes would be
// made again, so guard them by a unique key of your own.
func (s *Store) InsertTx(ctx context.Context, tx *sql.Tx, call core.Call, tasks []core.Task) error {
	const op = "insert in a transaction"
	if err := call.Check(); err != nil {
		return s.failTx(op, err)
	}
	var failed failures
	seen := map[core.ID]bool{}
	var valid []item[core.Task]
	for _, it := range sorted(tasks, taskID) {
		err := it.v.Check()
		if err == nil && seen[it.v.ID] {
			err = errTwice
		}
		if err != nil {
			failed.add(it.at, it.v.ID, err)
			continue
		}
		seen[it.v.ID] = true
		it.v.Due = core.CeilMilli(it.v.Due)
		valid = append(valid, it)
	}
	if err := s.ready(ctx, tx); err != nil {
		return s.failTx(op, err)
	}
	call.By = time.Time{} // the user's transaction is over or not
	r := s.within(tx)
	valid, err := s.passOverLive(ctx, r, call, valid, &failed)
	if err == nil {
		err = s.insert(ctx, r, call, valid, &failed)
	}
	if err != nil {
		return s.failTx(op, err)
	}
	return failed.err()
}

// passOverLive leaves out what an INSERT would refuse, by a plain read: INSERT
// locks the rows that it finds in its way until the transaction ends, and would
// hold up those tasks' heartbeats. What became live after the transaction's
// snapshot it doesn't see; the INSERT does.
func (s *Store) passOverLive(ctx context.Context, r runner, call core.Call, items []item[core.Task], failed *failures) ([]item[core.Task], error) {
	r.read = ""
	left := make([]item[core.Task], 0, len(items))
	for _, chunk := range chunks(items, idBytes(taskID)) {
		rows, err := s.readBack(ctx, r, idList(chunk, taskID))
		if err != nil {
			return nil, err
		}
		for _, it := range chunk {
			switch err := inserted(rows, it.v.ID, call); {
			case errors.Is(err, core.ErrBusy): // missing or finished
				left = append(left, it)
			default:
				failed.add(it.at, it.v.ID, err)
			}
		}
	}
	return left, nil
}

// SettleTx is Settle within the caller's transaction: the completion and the
// caller's own changes are committed together or not at all. core.ErrLeaseLost, in
// a *core.BatchError, means that this very call didn't make the settlement: the task
// is somebody else's, or an earlier transaction of the same grant settled it (whose
// COMMIT seemed to fail), or this one did before. Roll back, as what else it wrote
// would be written twice; the task stays as it was. (A repeat of Settle is a
// success.) Any other error means roll back too; see InsertTx.
//
// Make it the last statement before the commit: the row stays locked until then,
// and a heartbeat passes over it. It waits for a row that is locked, up to
// innodb_lock_wait_timeout.
func (s *Store) SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	valid, failed := checkSettlements(settlements)
	if err := s.ready(ctx, tx); err != nil {
		return s.failTx("settle in a transaction", err)
	}
	if err := s.settle(ctx, s.within(tx), core.FloorMilli(now), valid, &failed); err != nil {
		return s.failTx("settle in a transaction", err)
	}
	return failed.err()
}

// checkSettlements sorts a user's batch, brings times and texts into their form,
// and leaves out what is invalid.
func checkSettlements(settlements []core.Settlement) (valid []item[core.Settlement], failed failures) {
	seen := map[core.ID]bool{}
	for _, it := range sorted(settlements, settlementID) {
		err := it.v.Check()
		if err == nil && seen[it.v.Grant.ID] {
			err = errTwice
		}
		if err != nil {
			failed.add(it.at, it.v.Grant.ID, err)
			continue
		}
		seen[it.v.Grant.ID] = true
		if !it.v.Due.IsZero() {
			it.v.Due = core.CeilMilli(it.v.Due)
		}
		it.v.Err = core.StorableText(it.v.Err)
		valid = append(valid, it)
	}
	return valid, failed
}

var errTwice = fmt.Errorf("%w: the id is in the batch twice; the first one counts", core.ErrInvalid)

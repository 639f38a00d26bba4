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

// InsertTx is Insert as a part of the caller's transaction: the tasks exist when
// it commits. Tell the index afterwards (core's Producer.Track), or let the sweep
// find them.
//
// It checks its input: a task that breaks a rule, or comes twice, fails with
// core.ErrInvalid, an id that is live with core.ErrExists, both inside a
// *core.BatchError; the other tasks are stored and the transaction can go on.
// After any other error it can't. Due times are rounded up to the millisecond.
// Ids that are live are not locked; ids that are stored or replaced stay locked
// until the transaction ends, and another's uncommitted insert of the same id is
// waited for until ctx is done.
//
// A repeat with the same call.ID, after a commit whose outcome was unknown, is
// recognised: it changes nothing and is no error. The repeat's other writes would be
// made again, so guard them by a unique key of your own.
func (s *Store) InsertTx(ctx context.Context, tx pgx.Tx, call core.Call, tasks []core.Task) error {
	return s.insertTx(ctx, pgxRunner{tx, s.modes.override()}, call, tasks)
}

// InsertSQLTx is InsertTx for a *sql.Tx of pgx/stdlib.
func (s *Store) InsertSQLTx(ctx context.Context, tx *sql.Tx, call core.Call, tasks []core.Task) error {
	return s.insertTx(ctx, sqlRunner{tx, s.modes.override()}, call, tasks)
}

// SettleTx is Settle as a part of the caller's transaction, which makes the
// completion and the handler's own writes one: make it the last statement before
// the commit, since the row stays locked until then, and return core.Settled from
// the handler after the commit.
//
// A settlement that this very call didn't make fails with core.ErrLeaseLost: the
// grant is no longer the newest, or an earlier transaction of the same grant settled
// it (whose COMMIT seemed to fail), or this one did before. Roll back, as what else
// it wrote would be written twice; the task stays as it was. (A repeat of Settle is
// a success.) A settlement that breaks a rule fails with core.ErrInvalid. Both come
// inside a *core.BatchError, and the transaction can go on; after any other error
// it can't. now is the store's time, as finished_at will show it. Unlike Settle it
// waits for a locked row until ctx is done. Use READ COMMITTED: under a stricter
// level a heartbeat that came after the transaction's snapshot makes it fail with
// 40001.
func (s *Store) SettleTx(ctx context.Context, tx pgx.Tx, now time.Time, settlements []core.Settlement) error {
	return s.settleInTx(ctx, pgxRunner{tx, s.modes.override()}, now, settlements)
}

// SettleSQLTx is SettleTx for a *sql.Tx of pgx/stdlib.
func (s *Store) SettleSQLTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	return s.settleInTx(ctx, sqlRunner{tx, s.modes.override()}, now, settlements)
}

func (s *Store) insertTx(ctx context.Context, r runner, call core.Call, tasks []core.Task) error {
	const op = "insert in a transaction"
	if err := errors.Join(ctx.Err(), call.Check()); err != nil {
		return s.fail(op, err)
	}
	good, places, failed := sift(tasks, func(t core.Task) core.ID { return t.ID }, core.Task.Check)
	for i := range good {
		good[i].Due = core.CeilMilli(good[i].Due)
	}
	call.By = time.Time{} // the caller's transaction is what bounds it
	items, err := s.insert(ctx, r, call, good)
	if err != nil {
		return s.fail(op, err)
	}
	return batchError(append(failed, placed(items, places)...))
}

func (s *Store) settleInTx(ctx context.Context, r runner, now time.Time, settlements []core.Settlement) error {
	const op = "settle in a transaction"
	if err := ctx.Err(); err != nil {
		return s.fail(op, err)
	}
	good, places, failed := siftSettlements(settlements)
	items, err := s.settle(ctx, r, now, good, s.settlingTx())
	if err != nil {
		return s.fail(op, err)
	}
	return batchError(append(failed, placed(items, places)...))
}

// siftSettlements is sift for settlements, as core would pass them on.
func siftSettlements(settlements []core.Settlement) (good []core.Settlement, places []int, failed []core.ItemError) {
	good, places, failed = sift(settlements, settledID, core.Settlement.Check)
	for i := range good {
		good[i].Due = core.CeilMilli(good[i].Due)
		good[i].Err = core.StorableText(good[i].Err)
	}
	return good, places, failed
}

// sift returns a copy of the items that pass check and whose id is new, their
// places in items, and the failures of the others.
func sift[T any](items []T, id func(T) core.ID, check func(T) error) (good []T, places []int, failed []core.ItemError) {
	seen := make(map[core.ID]bool, len(items))
	for i, item := range items {
		err := check(item)
		if err == nil && seen[id(item)] {
			err = fmt.Errorf("%w: the id comes twice in one call", core.ErrInvalid)
		}
		if err != nil {
			failed = append(failed, core.ItemError{Index: i, ID: id(item), Err: err})
			continue
		}
		seen[id(item)] = true
		good, places = append(good, item), append(places, i)
	}
	return good, places, failed
}

// placed translates the places of failures in a sifted slice to the caller's.
func placed(items []core.ItemError, places []int) []core.ItemError {
	for i := range items {
		items[i].Index = places[items[i].Index]
	}
	return items
}

package sqliteclaim

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// The guard of every settlement: the newest grant, not ended yet.
const heldSQL = ` WHERE queue = ?1 AND id = ?2 AND status = 'running' AND token = ?3 AND holder = ?4`

const (
	doneSQL       = `UPDATE $table SET status = 'done', due = NULL, lease_until = 0, finished_at = ?5` + heldSQL
	deleteDoneSQL = `DELETE FROM $table` + heldSQL
	deadSQL       = `UPDATE $table SET status = 'dead', due = NULL, lease_until = 0, finished_at = ?5, last_error = ?6` + heldSQL
	retrySQL      = `UPDATE $table SET status = 'pending', due = ?5, planned = ?5, lease_until = 0, last_error = ?6` + heldSQL
	releaseSQL    = `UPDATE $table SET status = 'pending', due = ?5, lease_until = 0, attempts = attempts - 1` + heldSQL
)

const settledSQL = `
SELECT id, status, token, holder FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Settle implements [core.Claimer].
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return claim.InChunks(settlements, maxItems, maxBytes, settlementBytes, func(settlements []core.Settlement) error {
		var refused []core.ItemError
		err := s.do(ctx, "settle", share(settlements, settlementBytes), never, func(q querier) (err error) {
			refused, err = s.settleIn(ctx, q, now, settlements, claim.Row.Settled)
			return err
		})
		return cmp.Or(err, core.NewBatchError(refused))
	})
}

// SettleTx is Settle inside a transaction of the caller's: what the task did in
// that transaction and its completion are committed together, or neither. Make it
// the last statement before the commit, and let the handler return core.Settled
// after it. It checks and rounds its input, which for Settle core does. Items
// that are refused (ErrInvalid, ErrLeaseLost) are named in a *core.BatchError.
//
// ErrLeaseLost means that this very call didn't make the settlement: somebody else
// was granted the task, or an earlier transaction of the same grant settled it
// (whose COMMIT seemed to fail), or this one did before. Roll back, as what else it
// wrote would be written twice; the task stays as it was. (A repeat of Settle is a
// success.)
func (s *Store) SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	good, places, failed := checkSettlements(settlements)
	q := newOnSQL(tx)
	defer q.close()
	for start, chunk := range claim.Chunks(good, maxItems, maxBytes, settlementBytes) {
		errs, err := s.settleIn(ctx, q, now, chunk, claim.Row.SettledTx)
		if err != nil {
			return s.wrap("settle", err)
		}
		failed = appendErrors(failed, start, errs, places...)
	}
	return batchError(failed)
}

// checkSettlements does for a user's own call what core does for its own: it returns
// the settlements that may be sent, their places in the batch, and the others.
func checkSettlements(settlements []core.Settlement) (good []core.Settlement, places []int, failed []core.ItemError) {
	seen := make(map[core.ID]bool, len(settlements))
	for i, item := range settlements {
		item.Err = core.StorableText(item.Err)
		err := item.Check()
		if err == nil && seen[item.Grant.ID] {
			err = fmt.Errorf("%w: id is in this batch twice", core.ErrInvalid)
		}
		if err != nil {
			failed = append(failed, core.ItemError{Index: i, ID: item.Grant.ID, Err: err})
			continue
		}
		seen[item.Grant.ID] = true
		good, places = append(good, item), append(places, i)
	}
	return good, places, failed
}

// settleIn asks unchanged what it means that a row was not changed.
func (s *Store) settleIn(ctx context.Context, q querier, now time.Time, settlements []core.Settlement,
	unchanged func(claim.Row, core.Grant) error,
) ([]core.ItemError, error) {
	var refused []int
	for i := range settlements {
		n, err := s.settleOne(ctx, q, now, &settlements[i])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			refused = append(refused, i)
		}
	}
	return s.reasons(ctx, q, s.sql.settled, refused,
		func(i int) core.ID { return settlements[i].Grant.ID },
		func(r *claim.Row) []any { return []any{(*string)(&r.ID), (*string)(&r.Status), &r.Token, &r.Holder} },
		func(r claim.Row, i int) error {
			if r.Status == "" {
				return core.ErrLeaseLost
			}
			return unchanged(r, settlements[i].Grant)
		})
}

func (s *Store) settleOne(ctx context.Context, q querier, now time.Time, item *core.Settlement) (int64, error) {
	g := item.Grant
	switch item.Outcome {
	case core.Done:
		if s.delete {
			return q.exec(ctx, s.sql.deleteDone, s.queue, string(g.ID), g.Token, g.Holder)
		}
		return q.exec(ctx, s.sql.done, s.queue, string(g.ID), g.Token, g.Holder, now.UnixMilli())
	case core.DeadLetter:
		return q.exec(ctx, s.sql.dead, s.queue, string(g.ID), g.Token, g.Holder, now.UnixMilli(), item.Err)
	case core.Retry:
		return q.exec(ctx, s.sql.retry, s.queue, string(g.ID), g.Token, g.Holder, millis(item.Due), item.Err)
	case core.Released:
		return q.exec(ctx, s.sql.release, s.queue, string(g.ID), g.Token, g.Holder, millis(item.Due))
	default:
		return 0, fmt.Errorf("%w: outcome %s of id %q", core.ErrInvalid, item.Outcome, g.ID)
	}
}

func settlementBytes(s core.Settlement) int { return len(s.Grant.ID) + len(s.Err) }

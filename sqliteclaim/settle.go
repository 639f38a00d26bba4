package sqliteclaim

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// One statement for all outcomes: what differs between them comes with the item.
const settleSQL = `
UPDATE $table AS t SET
	status = j.status, due = j.due, planned = coalesce(j.planned, t.planned), lease_until = 0,
	attempts = t.attempts - j.released, last_error = coalesce(j.error, t.last_error), finished_at = j.finished
FROM (
	SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS holder, value ->> 3 AS status, value ->> 4 AS due,
		value ->> 5 AS planned, value ->> 6 AS released, value ->> 7 AS error, value ->> 8 AS finished
	FROM json_each(?2)
) AS j
WHERE t.queue = ?1 AND t.id = j.id AND t.status = 'running' AND t.token = j.token AND t.holder = j.holder`

// A DELETE has no FROM. The ids are looked up first; then each row's grant is
// looked up among those asked for.
const deleteDoneSQL = `
DELETE FROM $table
WHERE queue = ?1 AND id IN (SELECT value ->> 0 FROM json_each(?2)) AND status = 'running'
	AND (id, token, holder) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?2))
RETURNING id`

const settledSQL = `
SELECT id, status, token, holder FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Settle implements [core.Claimer].
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	var failed []core.ItemError
	for start, chunk := range claim.Chunks(settlements, maxItems, maxBytes, settlementBytes) {
		err := s.write(ctx, func(q querier) error {
			errs, err := s.settleIn(ctx, q, now, chunk)
			failed = appendErrors(failed, start, errs)
			return err
		})
		if err != nil {
			return s.wrap("settle", err)
		}
	}
	return core.NewBatchError(failed)
}

// SettleTx is Settle inside a transaction of the caller's: what the task did in
// that transaction and its completion are committed together, or neither. Make it
// the last statement before the commit, and let the handler return core.Settled
// after it. It checks and rounds its input, which for Settle core does. Items
// that are refused (ErrInvalid, ErrLeaseLost) are named in a *core.BatchError; on
// ErrLeaseLost roll back, as somebody else may have run the task.
func (s *Store) SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	var failed []core.ItemError
	good := make([]core.Settlement, 0, len(settlements))
	places := make([]int, 0, len(settlements))
	seen := make(map[core.ID]bool, len(settlements))
	for i, item := range settlements {
		item, err := cleanSettlement(item)
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
	for start, chunk := range claim.Chunks(good, maxItems, maxBytes, settlementBytes) {
		errs, err := s.settleIn(ctx, tx, now, chunk)
		if err != nil {
			return s.wrap("settle", err)
		}
		failed = appendErrors(failed, start, errs, places...)
	}
	return batchError(failed)
}

func (s *Store) settleIn(ctx context.Context, q querier, now time.Time, settlements []core.Settlement) ([]core.ItemError, error) {
	var updates, deletes array
	ids := make([]core.ID, len(settlements))
	updated := 0
	for i, item := range settlements {
		ids[i] = item.Grant.ID
		switch {
		case item.Grant.ID.Check() != nil:
		case item.Outcome == core.Done && s.delete:
			deletes.open()
			deletes.grant(item.Grant)
			deletes.close()
		default:
			updates.open()
			updates.settlement(now.UnixMilli(), item)
			updates.close()
			updated++
		}
	}
	deleted := map[core.ID]bool{}
	if len(deletes) > 0 {
		err := each(ctx, q, s.sql.deleteDone, func(scan scanner) error {
			var id core.ID
			err := scan(&id)
			deleted[id] = true
			return err
		}, s.queue, deletes.done())
		if err != nil {
			return nil, err
		}
	}
	if updated > 0 {
		n, err := changed(ctx, q, s.sql.settle, s.queue, updates.done())
		if err != nil {
			return nil, err
		}
		updated = n
	}
	if updated+len(deleted) == len(settlements) {
		return nil, nil
	}
	rows, err := s.readBack(ctx, q, s.sql.settled, ids, func(r *claim.Row) []any {
		return []any{(*string)(&r.ID), (*string)(&r.Status), &r.Token, &r.Holder}
	})
	if err != nil {
		return nil, err
	}
	var errs []core.ItemError
	for i, item := range settlements {
		if deleted[item.Grant.ID] {
			continue
		}
		if err := settled(rows, item.Grant); err != nil {
			errs = append(errs, core.ItemError{Index: i, ID: item.Grant.ID, Err: err})
		}
	}
	return errs, nil
}

func settled(rows map[core.ID]claim.Row, g core.Grant) error {
	r, ok := rows[g.ID]
	if !ok {
		return core.ErrLeaseLost
	}
	return r.Settled(g)
}

// settlement appends the columns that settleSQL reads.
func (a *array) settlement(now int64, s core.Settlement) {
	a.grant(s.Grant)
	switch s.Outcome {
	case core.Retry:
		due := millis(s.Due)
		a.text(string(claim.Pending))
		a.int(due)
		a.int(due)
		a.int(0)
		a.text(s.Err)
		a.null()
	case core.Released:
		a.text(string(claim.Pending))
		a.int(millis(s.Due))
		a.null()
		a.int(1)
		a.null()
		a.null()
	case core.DeadLetter:
		a.text(string(claim.DeadState))
		a.null()
		a.null()
		a.int(0)
		a.text(s.Err)
		a.int(now)
	default:
		a.text(string(claim.DoneState))
		a.null()
		a.null()
		a.int(0)
		a.null()
		a.int(now)
	}
}

func settlementBytes(s core.Settlement) int { return len(s.Grant.ID) + len(s.Err) }

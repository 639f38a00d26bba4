package conformance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// tiny is a store of two methods on database/sql, with a bug by request: what a
// stranger's first one may look like. It claims and settles in a transaction.
type tiny struct {
	core.Store // nil: the other methods are not called
	db         *sql.DB
	bug        string
}

const (
	tinyClaim = `UPDATE tasks SET status = 'running', token = token + 1, holder = ?, lease_until = ? ` +
		`WHERE id = ? AND due <= ? AND (status = 'pending' OR (status = 'running' AND lease_until < ? AND holder <> ?))`
	tinyClaimAny = `UPDATE tasks SET status = 'running', token = token + 1, holder = ?, lease_until = ? WHERE id = ?`
	tinyRead     = `SELECT status, due, planned, token, holder, lease_until, attempts, crashes, payload FROM tasks WHERE id = ?`
	tinyDone     = `UPDATE tasks SET status = 'done', finished_at = ? WHERE id = ? AND status = 'running' AND token = ? AND holder = ?`
	tinyDoneByID = `UPDATE tasks SET status = 'done', finished_at = ? WHERE id = ? AND status = 'running'`
)

// within runs f in a transaction.
func (s *tiny) within(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.wrapped(err)
	}
	if err = f(tx); err != nil {
		if s.bug != "transaction left open" {
			_ = tx.Rollback()
		}
		if s.bug == "tries again by itself" {
			return s.within(ctx, f)
		}
		return s.wrapped(err)
	}
	if s.bug == "commit forgotten" {
		return nil
	}
	if err = tx.Commit(); err != nil && s.bug != "commit error = success" {
		return s.wrapped(err)
	}
	return nil
}

// affected returns how many rows a statement changed.
func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s *tiny) wrapped(err error) error {
	if s.bug == "driver's error hidden" {
		return errors.New("tiny: " + err.Error())
	}
	return fmt.Errorf("tiny: %w", err)
}

func (s *tiny) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	dueBy, now := lease.DueBy.UnixMilli(), lease.Now.UnixMilli()
	if s.bug == "now for due by" {
		dueBy = now
	}
	won := map[core.ID]bool{}
	err := s.within(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			args := []any{lease.Holder, lease.Until.UnixMilli(), string(id), dueBy, now, lease.Holder}
			text := tinyClaim
			if s.bug == "status not in the WHERE" {
				text, args = tinyClaimAny, args[:3]
			}
			n, err := affected(tx.ExecContext(ctx, text, args...))
			if err != nil {
				return err
			}
			won[id] = n == 1
		}
		return nil
	})
	if err != nil && s.bug == "reply lost = lost claim" {
		out := make([]core.Claimed, len(ids))
		for i, id := range ids {
			out[i] = core.Claimed{ID: id, Verdict: core.Refused}
		}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]core.Claimed, len(ids))
	for i, id := range ids {
		row, err := s.read(ctx, id)
		if err != nil {
			return nil, s.wrapped(err)
		}
		out[i] = row.Claimed(lease)
		if s.bug == "0 rows = lost claim" && !won[id] && out[i].Verdict == core.Granted {
			out[i] = core.Claimed{ID: id, Verdict: core.Refused}
		}
	}
	return out, nil
}

// read returns the row, the zero one where there is none.
func (s *tiny) read(ctx context.Context, id core.ID) (row claim.Row, err error) {
	rows, err := s.db.QueryContext(ctx, tinyRead, string(id))
	if err != nil {
		return row, err
	}
	if s.bug != "rows left open" {
		defer func() { _ = rows.Close() }()
	}
	more := rows.Next()
	if more {
		row = claim.Row{ID: id, Kind: "mail", Meta: []byte{1}, MaxAttempts: 7}
		err = rows.Scan(&row.Status, &row.Due, &row.Planned, &row.Token, &row.Holder, &row.LeaseUntil, &row.Attempts, &row.Crashes, &row.Payload)
	}
	if s.bug == "error behind the rows ignored" || s.bug == "rows left open" {
		return row, err
	}
	for more && rows.Next() {
		return row, errors.New("the id has two rows")
	}
	return row, errors.Join(err, rows.Err())
}

func (s *tiny) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	var failed []core.ItemError
	err := s.within(ctx, func(tx *sql.Tx) error {
		for i, x := range list {
			args := []any{now.UnixMilli(), string(x.Grant.ID), x.Grant.Token, x.Grant.Holder}
			text := tinyDone
			if s.bug == "no token on completion" {
				text, args = tinyDoneByID, args[:2]
			}
			n, err := affected(tx.ExecContext(ctx, text, args...))
			if err != nil {
				return err
			}
			if n == 0 {
				failed = append(failed, core.ItemError{Index: i, ID: x.Grant.ID, Err: core.ErrLeaseLost})
			}
		}
		return nil
	})
	if err != nil && s.bug == "unknown outcome = refused" {
		return core.NewBatchError([]core.ItemError{{Index: 0, ID: list[0].Grant.ID, Err: core.ErrLeaseLost}})
	}
	if err != nil {
		return err
	}
	switch s.bug {
	case "0 rows = lost lease":
		return core.NewBatchError(failed)
	case "0 rows = success":
		return nil
	}
	return s.judge(ctx, list, failed)
}

// judge reads what the rows say that no statement changed.
func (s *tiny) judge(ctx context.Context, list []core.Settlement, unchanged []core.ItemError) error {
	var failed []core.ItemError
	for _, item := range unchanged {
		row, err := s.read(ctx, item.ID)
		if err != nil {
			return s.wrapped(err)
		}
		if item.Err = row.Settled(list[item.Index].Grant); item.Err != nil {
			failed = append(failed, item)
		}
	}
	return core.NewBatchError(failed)
}

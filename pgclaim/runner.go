package pgclaim

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
)

// scanner reads the columns of the current row.
type scanner func(dest ...any) error

// runner runs one statement and calls row for each row of its result. Rows
// count only when run returns nil: a row can arrive and the statement fail
// after it, at its commit at the latest.
type runner interface {
	run(ctx context.Context, sql string, args []any, row func(scanner) error) error
}

// pgxRunner is a runner on a *pgxpool.Conn or a pgx.Tx.
type pgxRunner struct {
	q interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
	mode []any
}

func (r pgxRunner) run(ctx context.Context, sql string, args []any, row func(scanner) error) error {
	rows, err := r.q.Query(ctx, sql, append(r.mode[:len(r.mode):len(r.mode)], args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err() // after the last row: it includes errors that came behind the rows
}

// sqlRunner is a runner on a *sql.Conn or a *sql.Tx.
type sqlRunner struct {
	q interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	mode []any
}

func (r sqlRunner) run(ctx context.Context, sql string, args []any, row func(scanner) error) error {
	rows, err := r.q.QueryContext(ctx, sql, append(r.mode[:len(r.mode):len(r.mode)], args...)...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // what it could say, rows.Err said
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// callRunner runs the statements of one call of the store on its pool, each a
// transaction of its own, and marks an error with core.ErrNotDone where it proves
// that no statement of the call has changed anything.
type callRunner struct {
	h    *handle
	rows bool // an earlier statement returned some: it may have changed them
}

func (r *callRunner) run(ctx context.Context, sql string, args []any, row func(scanner) error) error {
	had := r.rows
	err := r.h.onConn(ctx, func(one runner) error {
		return one.run(ctx, sql, args, func(s scanner) error {
			r.rows = true
			return row(s)
		})
	})
	if !had {
		return notDone(err)
	}
	if u, ok := errors.AsType[undone](err); ok { // the statement, but not the call
		return u.err
	}
	return err
}

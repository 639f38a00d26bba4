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

// pgxRunner is a runner on a *pgxpool.Pool or a pgx.Tx.
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

// sqlRunner is a runner on a *sql.DB or a *sql.Tx.
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

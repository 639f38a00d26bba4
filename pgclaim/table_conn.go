package pgclaim

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// tableConn is a sqltable.Conn: on the pool, where each statement is a
// transaction of its own and passes over locked rows, or (waits) in the user's
// transaction.
type tableConn struct {
	table  *Table
	runner runner // nil: the pool
	waits  bool
}

var _ sqltable.Conn = tableConn{}

func (c tableConn) run(ctx context.Context, sql string, args []any, row func(scanner) error) error {
	r := c.runner
	if r == nil {
		var err error
		if r, err = c.table.runner(ctx); err != nil {
			return err
		}
	}
	return r.run(ctx, sql, args, row)
}

// Query implements sqltable.Conn.
func (c tableConn) Query(ctx context.Context, q sqltable.Query, row func(sqltable.Row)) error {
	sql, args := c.table.query(q)
	return c.run(ctx, sql, args, func(s scanner) error {
		values, err := scan(s, q.Out)
		if err == nil {
			row(values)
		}
		return err
	})
}

// Change implements sqltable.Conn.
func (c tableConn) Change(ctx context.Context, change sqltable.Change) (sqltable.Changes, error) {
	done := sqltable.Changes{Changed: make([]bool, len(change.Items)), Rows: map[int]sqltable.Row{}}
	if len(change.Items) == 0 {
		return done, nil
	}
	sql, args := c.table.change(change, c.waits)
	err := c.undoable(ctx, change, func() error { return c.changed(ctx, sql, args, change, &done) })
	if err != nil {
		return sqltable.Changes{}, err
	}
	return done, nil
}

// undoable runs do. In a user's transaction an error leaves nothing but to roll it back;
// where the change carries a failure's text, which its column may refuse, it does so to a
// savepoint.
func (c tableConn) undoable(ctx context.Context, change sqltable.Change, do func() error) error {
	if !c.waits || !slices.Contains(change.Fields, sqltable.FieldErr) {
		return do()
	}
	control := func(sql string) error { return c.run(ctx, sql, nil, func(scanner) error { return nil }) }
	if err := control("SAVEPOINT dueclaim_text"); err != nil {
		return err
	}
	err := do()
	if err != nil && unfit(err) {
		return errors.Join(err, control("ROLLBACK TO SAVEPOINT dueclaim_text"), control("RELEASE SAVEPOINT dueclaim_text"))
	}
	if err != nil {
		return err
	}
	return control("RELEASE SAVEPOINT dueclaim_text")
}

func (c tableConn) changed(ctx context.Context, sql string, args []any, change sqltable.Change, done *sqltable.Changes) error {
	return c.run(ctx, sql, args, func(s scanner) error {
		var item int64
		values, err := scan(s, change.Returning, &item)
		if err != nil {
			return err
		}
		done.Changed[item] = true
		if change.Returning != nil {
			done.Rows[int(item)] = values
		}
		return nil
	})
}

// unfit is sqltable.Limits.Unfit, by the classes of SQLSTATE: data exceptions,
// constraints, limits, what a trigger raises; and a missing right on the column.
func unfit(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && len(pg.Code) == 5 && (pg.Code == codeNoPrivilege || slices.Contains([]string{"22", "23", "54", "P0"}, pg.Code[:2]))
}

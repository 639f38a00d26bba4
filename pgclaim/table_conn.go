package pgclaim

import (
	"context"

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
	err := c.run(ctx, sql, args, func(s scanner) error {
		var item int64
		values, err := scan(s, change.Returning, &item)
		if err != nil {
			return err
		}
		done.Changed[item], done.Rows[int(item)] = true, values
		return nil
	})
	return done, err
}

package sqliteclaim

import (
	"context"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// pooled is a Conn whose statements each are a transaction of their own.
type pooled struct{ t *Table }

// Query only reads, which in WAL mode doesn't wait for writers.
func (p pooled) Query(ctx context.Context, q sqltable.Query, row func(sqltable.Row)) error {
	var rows []sqltable.Row
	err := p.t.wait(ctx, func() error {
		rows = nil
		return inTx{p.t, newOnSQL(p.t.db)}.Query(ctx, q, func(r sqltable.Row) { rows = append(rows, r) })
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		row(r)
	}
	return nil
}

func (p pooled) Change(ctx context.Context, c sqltable.Change) (done sqltable.Changes, err error) {
	err = p.t.write(ctx, len(c.Items), func(q querier) (err error) {
		done, err = inTx{p.t, q}.Change(ctx, c)
		return err
	})
	if err != nil { // all of it was rolled back
		return sqltable.Changes{}, err
	}
	return done, nil
}

// unfit is sqltable.Limits.Unfit. A statement that fails so is undone, and no more.
func unfit(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}

// inTx is a Conn in a transaction that somebody else began.
type inTx struct {
	t *Table
	q querier
}

// Query sees the newest commit where the transaction has the write lock, which its
// first Change takes.
func (x inTx) Query(ctx context.Context, q sqltable.Query, row func(sqltable.Row)) error {
	return x.rows(ctx, x.t.query(q), q.Out, row)
}

// rows runs a statement that returns rows.
func (x inTx) rows(ctx context.Context, s *statement, outs []sqltable.Out, row func(sqltable.Row)) error {
	values, dest := make([]any, len(outs)), make([]any, len(outs))
	for i := range values {
		dest[i] = &values[i]
	}
	return x.q.query(ctx, s.text.String(), func(scan scanner) error {
		if err := scan(dest...); err != nil {
			return err
		}
		if r, ok := x.t.read(outs, values); ok {
			row(r)
		}
		return nil
	}, s.arguments(nil)...)
}

// Change knows of each item whether its row changed.
func (x inTx) Change(ctx context.Context, c sqltable.Change) (sqltable.Changes, error) {
	if len(c.Fields) == 0 {
		return x.changeAll(ctx, c)
	}
	s := x.t.changeItem(c)
	done := sqltable.Changes{Changed: make([]bool, len(c.Items))}
	for i := range c.Items {
		n, err := x.q.exec(ctx, s.text.String(), s.arguments(&c.Items[i])...)
		if err != nil {
			return done, err
		}
		done.Changed[i] = n > 0
	}
	return done, nil
}

// changeAll is for a change that is the same for all items: one statement.
func (x inTx) changeAll(ctx context.Context, c sqltable.Change) (sqltable.Changes, error) {
	place := make(map[core.ID]int, len(c.Items))
	for i := range c.Items {
		place[c.Items[i].ID] = i
	}
	s, outs := x.t.changeItems(c)
	done := sqltable.Changes{Changed: make([]bool, len(c.Items))}
	if c.Returning != nil {
		done.Rows = make(map[int]sqltable.Row, len(c.Items))
	}
	err := x.rows(ctx, s, outs, func(r sqltable.Row) {
		i, ok := place[core.ID(r[0].Text)]
		if !ok {
			return
		}
		done.Changed[i] = true
		if done.Rows != nil {
			done.Rows[i] = r[1:]
		}
	})
	if err != nil {
		return sqltable.Changes{}, err
	}
	return done, nil
}

var (
	_ sqltable.Conn = pooled{}
	_ sqltable.Conn = inTx{}
)

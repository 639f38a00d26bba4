package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// selection is the SELECT of a Query, and what to put behind it.
func (t *Table) selection(c *catalog, q sqltable.Query, mode queryMode) (string, error) {
	s := t.statement(c)
	s.sql("SELECT ")
	for i, o := range q.Out {
		if i > 0 {
			s.sql(", ")
		}
		s.out(o)
	}
	s.expr(q.Rest)
	if q.Current {
		s.sql(mode.lock)
	}
	set := slices.Clip(mode.set)
	if t.stamped() {
		set = append(set, "time_zone = '+00:00'")
	}
	if mode.joined && c.dialect.snapshot {
		set = append(set, newestRows)
	}
	return c.dialect.set(s.String(), set...), s.err
}

// out writes what is read: bytes and integers, which no driver option changes.
func (s *statement) out(o sqltable.Out) {
	name := ""
	for _, p := range o.Expr {
		if col, ok := p.(sqltable.Col); ok {
			name = string(col)
		}
	}
	switch o.As {
	case sqltable.AsID:
		s.outID(o.Expr)
	case sqltable.AsText, sqltable.AsBytes:
		if name == s.t.def.State.Name && o.As == sqltable.AsText {
			s.state(o.Expr)
		} else {
			s.asBytes(name, func() { s.expr(o.Expr) })
		}
	case sqltable.AsTime:
		if o.Time.Integer() {
			s.expr(o.Expr)
			return
		}
		s.sql("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', ")
		s.expr(o.Expr)
		s.sql(")")
	default:
		s.expr(o.Expr)
	}
}

func (s *statement) outID(e sqltable.Expr) {
	if s.uuid() {
		s.sql("CAST(")
		s.expr(e)
		s.sql(" AS CHAR)")
		return
	}
	s.asBytes(s.t.def.ID.Name, func() { s.expr(e) })
}

// state reads the state in the spelling that the Table has for it, whatever the
// column takes for equal: as the guards do.
func (s *statement) state(e sqltable.Expr) {
	st := s.t.def.State
	if st.Pending.Kind() != claim.TextValue {
		s.expr(e)
		return
	}
	s.sql("CASE")
	for _, v := range []claim.Value{st.Pending, st.Processing, st.Done, st.Dead} {
		if v.IsZero() {
			continue
		}
		s.sql(" WHEN ")
		s.expr(e)
		s.sql(" = ")
		s.value(v)
		s.sql(" THEN ")
		s.val(v.Text())
	}
	s.sql(" ELSE ")
	s.asBytes(st.Name, func() { s.expr(e) })
	s.sql(" END")
}

// run runs a SELECT and calls row for each row of the result.
func (t *Table) run(ctx context.Context, conn conn, query string, outs []sqltable.Out, row func(sqltable.Row)) error {
	raw, dest := make([][]byte, len(outs)), make([]any, len(outs))
	for i := range raw {
		dest[i] = &raw[i]
	}
	return each(ctx, conn, query, nil, func(rows *sql.Rows) error {
		clear(raw)
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		r := make(sqltable.Row, len(outs))
		for i, o := range outs {
			v, err := t.read(o, raw[i])
			if err != nil {
				return err
			}
			r[i] = v
		}
		row(r)
		return nil
	})
}

// read is a value as the server sent it.
func (t *Table) read(o sqltable.Out, b []byte) (v sqltable.Val, err error) {
	if b == nil {
		return sqltable.Val{Null: true}, nil
	}
	switch o.As {
	case sqltable.AsInt, sqltable.AsTime:
		if v.Int, err = strconv.ParseInt(string(b), 10, 64); err != nil {
			return v, fmt.Errorf("an integer of 64 bits is expected: %w", err)
		}
	case sqltable.AsBytes:
		v.Bytes = b
	case sqltable.AsID:
		v.Text = string(b)
		if t.def.ID.Kind == claim.BinaryUUIDID && len(b) == 16 {
			v.Text = claim.FormatUUID([16]byte(b))
		}
	default:
		v.Text = string(b)
	}
	return v, nil
}

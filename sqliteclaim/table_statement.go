package sqliteclaim

import (
	"strconv"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// statement is a statement on the table while it is written. Names of the table's
// description are quoted in it; all values are arguments, or literals that can be
// nothing else.
type statement struct {
	t    *Table
	text strings.Builder
	args []func(*sqltable.Item) any
	// row is what the table's row is called: t, but in an UPDATE by the table's name,
	// as RETURNING knows no other.
	row string
	// plain: columns stand for themselves, so that an index on them serves. Else only
	// the id's does, whatever the planner thinks of the others: + makes an expression
	// of a column.
	plain bool
}

// query is a SELECT.
func (t *Table) query(q sqltable.Query) *statement {
	s := &statement{t: t, row: "t"}
	return s.sql("SELECT ").out(q.Out).expr(q.Rest)
}

// changeItem is the UPDATE of one item's row.
func (t *Table) changeItem(c sqltable.Change) *statement {
	s := &statement{t: t, row: t.name}
	return s.set(c.Set).sql(" WHERE ").itemID().sql(" AND ").expr(c.Guard)
}

// changeItems is the UPDATE of all items' rows, where it is the same for all. It
// returns their ids, and behind them what was asked for.
func (t *Table) changeItems(c sqltable.Change) (*statement, []sqltable.Out) {
	ids := make([]core.ID, len(c.Items))
	for i := range c.Items {
		ids[i] = c.Items[i].ID
	}
	outs := append([]sqltable.Out{{Expr: sqltable.Expr{sqltable.Col(t.def.ID.Name)}, As: sqltable.AsID}}, c.Returning...)
	s := &statement{t: t, row: t.name}
	s.set(c.Set).sql(" WHERE ").expr(sqltable.Expr{sqltable.IDIn(ids)}).sql(" AND ").expr(c.Guard).dated()
	return s.sql(" RETURNING ").out(outs), outs
}

// textDue tells whether due times are text.
func (t *Table) textDue() bool {
	due, _ := t.def.Due.Source()
	return !due.Integer()
}

// dated writes the condition that a due time which is text is one that readClock
// reads: else a claim would change a row of which it then can't tell anything. Numbers
// come before all texts, and so would be due; a text with an offset shows another
// clock than the column's.
func (s *statement) dated() *statement {
	if !s.t.textDue() {
		return s
	}
	due, _ := s.t.def.Due.Source()
	c := s.column(due.Name)
	s.sql(" AND typeof(", c, ") = 'text' AND datetime(substr(", c, ", 1, 19)) = CASE length(", c, ")",
		" WHEN 10 THEN ", c, " || ' 00:00:00' WHEN 16 THEN replace(", c, ", 'T', ' ') || ':00'",
		" ELSE replace(substr(", c, ", 1, 19), 'T', ' ') END")
	// Behind the fraction as in ownClock.
	if due.Zone != time.UTC {
		return s.sql(" AND ltrim(substr(", c, ", 20), '.0123456789') = ''")
	}
	return s.sql(" AND (ltrim(substr(", c, ", 20), '.0123456789') IN ('', 'Z', '+00:00', ' +0000 UTC')",
		" OR ltrim(substr(", c, ", 20), '.0123456789') GLOB ' +0000 UTC m=*')")
}

func (s *statement) sql(parts ...string) *statement {
	for _, p := range parts {
		s.text.WriteString(p)
	}
	return s
}

// arg writes a placeholder for a fixed value.
func (s *statement) arg(v any) { s.argOf(func(*sqltable.Item) any { return v }) }

// argOf writes a placeholder for a value that differs from item to item.
func (s *statement) argOf(value func(*sqltable.Item) any) {
	s.text.WriteByte('?')
	s.args = append(s.args, value)
}

// arguments are the values of the placeholders for an item, nil where no value
// depends on one.
func (s *statement) arguments(it *sqltable.Item) []any {
	list := make([]any, len(s.args))
	for i, value := range s.args {
		list[i] = value(it)
	}
	return list
}

func (s *statement) column(name string) string {
	if s.plain {
		return s.row + "." + quote(name)
	}
	return "+" + s.row + "." + quote(name)
}

func (s *statement) expr(e sqltable.Expr) *statement {
	for _, p := range e {
		switch p := p.(type) {
		case sqltable.SQL:
			s.sql(string(p))
		case sqltable.From:
			if !p.ByKey && s.t.textDue() { // else a page of a sweep could be all rows that read drops
				s.sql("(SELECT * FROM ", s.t.name, " AS t WHERE TRUE").dated().sql(") AS t")
			} else {
				s.sql(s.t.name, " AS t")
			}
			s.plain = !p.ByKey
		case sqltable.Col:
			s.sql(s.column(string(p)))
		case sqltable.Value:
			if s.plain { // a partial index serves only who writes its condition out
				s.sql(literal(p.V))
			} else {
				s.arg(bound(p.V))
			}
		case sqltable.Text:
			s.arg(string(p))
		case sqltable.Int:
			s.arg(int64(p))
		case sqltable.Clock:
			s.argOf(func(*sqltable.Item) any { return time.Now().UnixMicro() }) // when the statement runs
		case sqltable.Tick:
			s.argOf(func(*sqltable.Item) any { return tableTokens.next(time.Now()) })
		case sqltable.Time:
			s.arg(moment(p.Column, p.N))
		case sqltable.ID:
			s.arg(s.t.idArgument(core.ID(p)))
		case sqltable.IDIn:
			s.ids(p)
		case sqltable.ItemField:
			s.argOf(func(it *sqltable.Item) any { return s.t.field(sqltable.Field(p), it) })
		}
	}
	return s
}

// set writes an UPDATE up to its WHERE. An assignment sees the old values.
func (s *statement) set(list []sqltable.Assign) *statement {
	s.sql("UPDATE ", s.t.name, " SET ")
	for i, a := range list {
		if i > 0 {
			s.sql(", ")
		}
		s.sql(quote(a.Column), " = ").expr(a.To)
	}
	return s
}

// out writes a value that is read. As an expression it has no declared type: for a
// DATETIME the driver would make a time of what it can read as one.
func (s *statement) out(outs []sqltable.Out) *statement {
	for i, o := range outs {
		if i > 0 {
			s.sql(", ")
		}
		if o.As == sqltable.AsID && s.t.def.ID.Kind == claim.BinaryUUIDID {
			s.sql("CASE typeof(").expr(o.Expr).sql(") WHEN 'blob' THEN lower(hex(").expr(o.Expr).sql(")) END")
			continue
		}
		s.sql("+(").expr(o.Expr).sql(")")
	}
	return s
}

// ids writes the condition that the id is one of these, in every byte. The list is
// one argument: the text doesn't depend on how many there are.
func (s *statement) ids(ids []core.ID) {
	list := idArray(ids)
	id := s.row + "." + quote(s.t.def.ID.Name)
	switch s.t.def.ID.Kind {
	case claim.IntegerID:
		s.sql(id, " IN (SELECT CAST(value AS INTEGER) FROM json_each(").arg(list)
		s.sql(")) AND typeof(", id, ") = 'integer'")
	case claim.BinaryUUIDID:
		s.sql(id, " IN (SELECT unhex(value, '-') FROM json_each(").arg(list)
		s.sql("))")
	default:
		// The first as the column compares, for its index; the second as bytes.
		s.sql(id, " IN (SELECT value FROM json_each(").arg(list)
		s.sql(")) AND CAST(", id, " AS BLOB) IN (SELECT CAST(value AS BLOB) FROM json_each(").arg(list)
		s.sql("))")
	}
}

// itemID writes the condition that the id is the item's, in every byte.
func (s *statement) itemID() *statement {
	id := s.row + "." + quote(s.t.def.ID.Name)
	value := func(it *sqltable.Item) any { return s.t.idArgument(it.ID) }
	s.sql(id, " = ").argOf(value)
	switch s.t.def.ID.Kind {
	case claim.IntegerID:
		s.sql(" AND typeof(", id, ") = 'integer'")
	case claim.BinaryUUIDID:
	default:
		s.sql(" AND CAST(", id, " AS BLOB) = CAST(").argOf(value)
		s.sql(" AS BLOB)")
	}
	return s
}

// field is a field of an item as an argument.
func (t *Table) field(f sqltable.Field, it *sqltable.Item) any {
	if f == sqltable.FieldHolder || f == sqltable.FieldErr {
		return it.Text(f)
	}
	if c, ok := f.Column(&t.def); ok {
		return moment(c, it.Integer(f))
	}
	return it.Integer(f)
}

// moment is a time column's value as an argument.
func moment(c claim.TimeColumn, value int64) any {
	if c.Integer() {
		return value
	}
	return c.Text(value)
}

// literal writes a value, which has no control character in it.
func literal(v claim.Value) string {
	if v.Kind() == claim.TextValue {
		return "'" + strings.ReplaceAll(v.Text(), "'", "''") + "'"
	}
	return strconv.FormatInt(v.Int(), 10)
}

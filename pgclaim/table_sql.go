package pgclaim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// writer writes the parts of sqltable's statements as Postgres's SQL. Names are
// quoted; everything else is an argument, so that no value is ever a part of the
// text, and a statement has one text whatever its values are.
//
// Arguments are strings and integers, lists too (as array literals): pgx sends
// those as text in all of its modes, to columns of types that it doesn't know as
// well. A fixed value has no cast, so that the server takes it for the column's
// own type (an enum, a domain, char(n), citext) and finds the indexes on it,
// partial ones too.
type writer struct {
	strings.Builder
	table *Table
	args  []any
	ids   []core.ID // of the statement's IDIn
}

// arg adds an argument and returns its place.
func (w *writer) arg(value any) string {
	w.args = append(w.args, value)
	return "$" + strconv.Itoa(len(w.args))
}

func (w *writer) text(parts ...string) {
	for _, p := range parts {
		w.WriteString(p)
	}
}

func (w *writer) expr(e sqltable.Expr) {
	for _, part := range e {
		switch p := part.(type) {
		case sqltable.SQL:
			w.text(string(p))
		case sqltable.From:
			w.from(p)
		case sqltable.Col:
			w.text("t.", quote(string(p)))
		case sqltable.Value:
			w.value(p.V)
		case sqltable.Text:
			w.text(w.arg(string(p)))
		case sqltable.Int:
			w.text(w.arg(int64(p)), "::bigint")
		case sqltable.Clock, sqltable.Tick:
			w.text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
		case sqltable.Time:
			if p.Column.Integer() {
				w.text(w.arg(p.N), "::bigint")
			} else {
				w.text(w.arg(instant(p.Column, p.N)), "::", timeType(p.Column))
			}
		case sqltable.ID:
			w.text(w.arg(string(p)), w.table.idCast())
		case sqltable.IDIn:
			w.text(w.table.idText(), " = ANY (", w.arg(arrayOf(p, idString)), "::text[])")
		case sqltable.ItemField:
			w.text("a.", fieldName(sqltable.Field(p)))
		}
	}
}

// from reads the table. Rows by id come out of a subquery that looks at nothing
// but the id: of several conditions the planner would choose the index by what
// its statistics say, and just after a burst of inserts they say that there is no
// pending row. It doesn't know the length of ARRAY(SELECT …) and takes it for
// ten; for hundreds, and a table that it takes for small, it would read all.
func (w *writer) from(f sqltable.From) {
	if f.ByKey && w.ids != nil {
		w.text("(SELECT * FROM ", w.table.name, " AS t WHERE t.", quote(w.table.def.ID.Name), " = ANY (ARRAY(SELECT unnest(")
		w.list(arrayOf(w.ids, idString))
		w.text("))) OFFSET 0) AS t")
		return
	}
	w.text(w.table.name, " AS t")
}

func (w *writer) value(v claim.Value) {
	switch v.Kind() {
	case claim.TextValue:
		w.text(w.arg(v.Text()))
	case claim.BoolValue:
		w.text(w.arg(v.Int() == 1), "::boolean")
	default:
		w.text(w.arg(v.Int()), "::bigint")
	}
}

// out writes a value to be read.
func (w *writer) out(o sqltable.Out) {
	e := func() { w.text("("); w.expr(o.Expr); w.text(")") }
	switch {
	case o.As == sqltable.AsID, o.As == sqltable.AsText:
		e()
		w.text("::text")
	case o.As == sqltable.AsInt, o.As == sqltable.AsTime && o.Time.Integer():
		e()
		w.text("::bigint")
	case o.As == sqltable.AsTime: // infinity is no instant, and -infinity has begun long ago
		w.text("CASE WHEN isfinite(")
		e()
		w.text(") THEN (extract(epoch FROM ")
		e()
		w.text(") * 1000000)::bigint WHEN ")
		e()
		w.text(" < 'epoch' THEN 0 END")
	default:
		e()
	}
}

// idCast is what an id needs to be compared with the column. An integer may be
// beyond the column's range; that of a text or uuid is the column's to say.
func (t *Table) idCast() string {
	if t.def.ID.Kind == claim.IntegerID {
		return "::bigint"
	}
	return ""
}

// list writes a list of ids of the column's own type, which it need not know.
func (w *writer) list(array string) {
	if w.table.def.ID.Kind == claim.IntegerID { // some may be beyond the column's range
		w.text(w.arg(array), "::bigint[]")
		return
	}
	w.text("coalesce((SELECT array_agg(x.", quote(w.table.def.ID.Name), ") FROM ", w.table.name, " AS x WHERE false), ", w.arg(array), ")")
}

// idText is the canonical form of a row's id, to be compared byte by byte.
func (t *Table) idText() string { return "t." + quote(t.def.ID.Name) + `::text COLLATE "C"` }

func idString(id core.ID) string { return string(id) }

// arrayOf writes an array literal.
func arrayOf[T any](items []T, text func(T) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		for _, c := range []byte(text(item)) {
			if c == '"' || c == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// instant writes a value of a time column that is no integer; for timestamptz in
// UTC, whatever the session's zone is.
func instant(c claim.TimeColumn, value int64) string {
	if c.Kind == claim.Timestamp {
		return c.Text(value) + "+00"
	}
	return c.Text(value)
}

func timeType(c claim.TimeColumn) string {
	switch {
	case c.Integer():
		return "bigint"
	case c.Kind == claim.Timestamp:
		return "timestamptz"
	default:
		return "timestamp"
	}
}

// fieldName is the column of a field in the list of items.
func fieldName(f sqltable.Field) string {
	return [...]string{
		sqltable.FieldToken: "token", sqltable.FieldHolder: "holder", sqltable.FieldErr: "err", sqltable.FieldDue: "due",
		sqltable.FieldLease: "lease", sqltable.FieldFence: "fence", sqltable.FieldUpdated: "updated",
	}[f]
}

// field makes the array of a field, and its type.
func (t *Table) field(items []sqltable.Item, f sqltable.Field) (array, of string) {
	switch f {
	case sqltable.FieldHolder, sqltable.FieldErr:
		return arrayOf(items, func(it sqltable.Item) string { return it.Text(f) }), "text"
	}
	c, isTime := f.Column(&t.def)
	if !isTime || c.Integer() {
		return arrayOf(items, func(it sqltable.Item) string { return strconv.FormatInt(it.Integer(f), 10) }), "bigint"
	}
	return arrayOf(items, func(it sqltable.Item) string { return instant(c, it.Integer(f)) }), timeType(c)
}

// query writes a SELECT.
func (t *Table) query(q sqltable.Query) (string, []any) {
	w := &writer{table: t}
	for _, part := range q.Rest {
		if ids, ok := part.(sqltable.IDIn); ok {
			w.ids = ids
		}
	}
	w.text("SELECT ")
	for i, o := range q.Out {
		if i > 0 {
			w.text(", ")
		}
		w.out(o)
	}
	w.expr(q.Rest)
	if q.Current && t.def.Mode() != claim.Transition { // what a repeat finds to be done; a step of Transition is the user's
		w.text(" AND ", durableSQL)
	}
	w.hex(q.Out)
	return w.String(), w.args
}

// hex has bytes returned in the form that pgx reads, whatever the session's is.
func (w *writer) hex(outs []sqltable.Out) {
	if slices.ContainsFunc(outs, func(o sqltable.Out) bool { return o.As == sqltable.AsBytes }) {
		w.text(" AND ", hexSQL)
	}
}

// change writes a conditional change. Its first half looks the rows up one by one
// in the order of their ids, by nothing but the id, judges the newest version of
// each and locks it; the second writes what was locked. "(guard) IS TRUE" and
// the LATERAL subquery keep the planner from any other index and from a join over
// the whole table. The list of ids takes its type from the column.
func (t *Table) change(c sqltable.Change, wait bool) (string, []any) {
	w := &writer{table: t}
	id := quote(t.def.ID.Name)
	ids := make([]core.ID, len(c.Items))
	for i, it := range c.Items {
		ids[i] = it.ID
	}
	texts := arrayOf(ids, idString)
	w.text("WITH picked AS MATERIALIZED (SELECT a.* FROM unnest(")
	w.list(texts)
	w.text(", ", w.arg(texts), "::text[]")
	names := "key, id"
	for _, f := range c.Fields {
		array, of := t.field(c.Items, f)
		w.text(", ", w.arg(array), "::", of, "[]")
		names += ", " + fieldName(f)
	}
	guard := func() {
		w.text("t.", id, " = a.key AND ", t.idText(), " = a.id AND (")
		w.expr(c.Guard)
		w.text(") IS TRUE")
	}
	w.text(") WITH ORDINALITY AS a(", names, ", item) CROSS JOIN LATERAL (SELECT 1 FROM ", t.name, " AS t WHERE ")
	guard()
	w.text(" FOR NO KEY UPDATE")
	if !wait {
		w.text(" SKIP LOCKED")
	}
	w.text(") AS r) UPDATE ", t.name, " AS t SET ")
	for i, set := range c.Set {
		if i > 0 {
			w.text(", ")
		}
		w.text(quote(set.Column), " = ")
		w.expr(set.To)
	}
	w.text(" FROM picked AS a WHERE t.", id, " = ANY (ARRAY(SELECT key FROM picked)) AND ")
	guard()
	w.hex(c.Returning)
	w.text(" RETURNING a.item - 1")
	for _, o := range c.Returning {
		w.text(", ")
		w.out(o)
	}
	return w.String(), w.args
}

// scan reads a row, the values of outs behind those of before.
func scan(scan scanner, outs []sqltable.Out, before ...any) (sqltable.Row, error) {
	dest := before
	for _, o := range outs {
		switch o.As {
		case sqltable.AsID, sqltable.AsText:
			dest = append(dest, new(*string))
		case sqltable.AsBytes:
			dest = append(dest, new([]byte))
		default:
			dest = append(dest, new(*int64))
		}
	}
	if err := scan(dest...); err != nil {
		return nil, err
	}
	row := make(sqltable.Row, len(outs))
	for i := range outs {
		switch d := dest[len(before)+i].(type) {
		case **string:
			if row[i].Null = *d == nil; *d != nil {
				row[i].Text = **d
			}
		case **int64:
			if row[i].Null = *d == nil; *d != nil {
				row[i].Int = **d
			}
		case *[]byte:
			row[i].Null, row[i].Bytes = *d == nil, *d
		default:
			return nil, fmt.Errorf("a destination of type %T", d)
		}
	}
	return row, nil
}

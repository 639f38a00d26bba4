package mysqlclaim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// statement writes SQL for a Table. Like text, it has no arguments: a name is
// quoted, a value is a number, harmless ASCII between quotes, or hex.
type statement struct {
	text
	t *Table
	c *catalog
	// column is the one that was written last: a value beside it is given its
	// character set.
	column string
	// changing: TIMESTAMPs are compared as seconds since 1970, which no time zone
	// can make ambiguous. (A SELECT runs in UTC instead, and so can use an index. A
	// change can't: triggers and ON UPDATE CURRENT_TIMESTAMP would write UTC too.)
	changing bool
	// assigning: columns and fields are those of the derived table was.
	assigning bool
	item      *sqltable.Item   // whose fields are written as literals, nil: v has them
	fields    []sqltable.Field // of v, in order
	carried   []string         // columns that was has, in order
	err       error
}

func (t *Table) statement(c *catalog) *statement { return &statement{t: t, c: c} }

func (s *statement) force(index string, ok bool) {
	if ok {
		s.sql(" FORCE INDEX (", quoteName(index), ")")
	}
}

// from is the table under an alias, its rows looked up by the id.
func (s *statement) from(alias string) {
	s.sql(s.t.quoted, " AS ", alias)
	s.force(s.c.idIndex(s.t.def.ID.Name))
}

func (s *statement) expr(e sqltable.Expr) {
	for _, p := range e {
		switch p := p.(type) {
		case sqltable.SQL:
			s.sql(string(p))
		case sqltable.From:
			if p.ByKey {
				s.from("t")
				continue
			}
			s.sql(s.t.quoted, " AS t")
			s.force(s.c.dueIndex(s.t.def))
		case sqltable.Col:
			s.col(string(p))
		case sqltable.Value:
			s.value(p.V)
		case sqltable.Text:
			s.chars(s.column, string(p), false)
		case sqltable.Int:
			s.int(int64(p))
		case sqltable.Clock, sqltable.Tick:
			s.sql(serverClock)
		case sqltable.Time:
			s.time(p.Column, p.N)
		case sqltable.ID:
			s.id(core.ID(p), false)
		case sqltable.IDIn:
			s.ids(p)
		case sqltable.ItemField:
			s.field(sqltable.Field(p))
		default:
			s.err = fmt.Errorf("an unknown part of an expression: %T", p)
		}
	}
}

func (s *statement) col(name string) {
	s.column = name
	if s.assigning {
		i := slices.Index(s.carried, name)
		s.sql(fmt.Sprintf("was.c%d", i))
		return
	}
	if s.changing && s.stamp(name) {
		s.sql("UNIX_TIMESTAMP(t.", quoteName(name), ")")
		return
	}
	if s.changing && name == s.t.def.Holder { // names of holders differ by more than spelling
		s.asBytes(name, func() { s.sql("t.", quoteName(name)) })
		return
	}
	s.sql("t.", quoteName(name))
}

// asBytes is a text's UTF-8; a binary string or a number is as it is.
func (s *statement) asBytes(name string, expr func()) {
	if f := s.c.column(name); f == nil || f.charset == "" {
		expr()
		return
	}
	s.sql("CAST(CONVERT(")
	expr()
	s.sql(" USING utf8mb4) AS BINARY)")
}

// stamp tells whether a column is a TIMESTAMP.
func (s *statement) stamp(name string) bool {
	return slices.ContainsFunc(s.t.def.Columns(), func(c claim.Column) bool {
		return c.Name == name && c.Time != nil && c.Time.Kind == claim.Timestamp
	})
}

func (s *statement) value(v claim.Value) {
	if v.Kind() == claim.TextValue {
		s.chars(s.column, v.Text(), false)
	} else {
		s.int(v.Int())
	}
}

// chars writes a character string to be compared with a column, or stored in it.
// ASCII alone fits every character set; what else there may be is brought into
// the column's, as a mix of two can't use the index or is refused. whole: with the
// column's own collation, for a derived table, whose columns have one like others.
func (s *statement) chars(name, v string, whole bool) {
	f := s.c.column(name)
	if f != nil && f.charset == "" || s.changing && !s.assigning && name == s.t.def.Holder { // bytes
		s.val(v)
		return
	}
	if f == nil || ascii(v) && !whole {
		s.utf8(v)
		return
	}
	if f.charset == "utf8mb4" {
		s.utf8(v)
	} else {
		s.sql("CONVERT(")
		s.utf8(v)
		s.sql(" USING ", f.charset, ")")
	}
	s.sql(" COLLATE ", f.collation)
}

// utf8 writes a character string.
func (s *statement) utf8(v string) {
	if v != "" && harmless(v) { // empty quotes may be NULL, see text.val
		s.sql("_utf8mb4'", v, "'")
		return
	}
	s.sql(fmt.Sprintf("_utf8mb4 x'%x'", v))
}

func ascii(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r > '~' })
}

// time writes a value of a time column.
func (s *statement) time(c claim.TimeColumn, n int64) {
	switch {
	case c.Integer():
		s.int(n)
	case c.Kind == claim.Timestamp && s.changing:
		if s.assigning {
			s.seconds(n, s.c.lastStamp())
		} else {
			s.decimal(n)
		}
	default:
		s.sql("TIMESTAMP'", c.Text(min(n, lastDateTime)), "'")
	}
}

// The last moments of types, in microseconds since 1970.
const (
	lastDateTime  = 253402300799999999 // 9999-12-31 23:59:59.999999
	lastTimestamp = 2147483647999999
	longTimestamp = 4294967295999999 // MariaDB from 11.5 on, on 64 bits
)

func (c *catalog) lastStamp() int64 {
	var major, minor int
	_, _ = fmt.Sscanf(c.session["version"], "%d.%d", &major, &minor)
	if c.mariadb && (major > 11 || major == 11 && minor >= 5) {
		return longTimestamp
	}
	return lastTimestamp
}

// seconds writes an instant to be stored in a TIMESTAMP. One that the type doesn't
// have would become Null.
func (s *statement) seconds(n, last int64) {
	if n > last {
		s.err = fmt.Errorf("a TIMESTAMP ends at %s: use another type for times after that", claim.TimeColumn{Kind: claim.Timestamp}.Text(last))
	}
	s.sql("FROM_UNIXTIME(")
	s.decimal(n)
	s.sql(")")
}

// decimal writes microseconds as seconds.
func (s *statement) decimal(n int64) {
	if n < 0 {
		s.sql("-")
		n = -n
	}
	s.sql(fmt.Sprintf("%d.%06d", n/1e6, n%1e6))
}

// field writes an item's field: a literal, or the column that has it.
func (s *statement) field(f sqltable.Field) {
	timed, isTime := f.Column(&s.t.def)
	stamp := isTime && timed.Kind == claim.Timestamp
	if s.item != nil {
		s.literal(s.item, f, false)
		return
	}
	source := fmt.Sprintf("v.f%d", slices.Index(s.fields, f))
	if s.assigning {
		source = fmt.Sprintf("was.f%d", slices.Index(s.fields, f))
	}
	switch {
	case s.assigning && stamp:
		s.sql("FROM_UNIXTIME(", source, ")")
	case s.assigning && f == sqltable.FieldErr && s.charset(s.t.def.LastError) != "":
		s.sql("CONVERT(", source, " USING utf8mb4)")
	default:
		s.sql(source)
	}
}

// literal writes an item's field; whole: for the derived table v.
func (s *statement) literal(it *sqltable.Item, f sqltable.Field, whole bool) {
	timed, isTime := f.Column(&s.t.def)
	switch {
	case isTime && whole && timed.Kind == claim.Timestamp:
		if n := it.Integer(f); f != sqltable.FieldFence && n > s.c.lastStamp() {
			s.seconds(n, s.c.lastStamp()) // fails
		}
		s.decimal(it.Integer(f))
	case isTime:
		s.time(timed, it.Integer(f))
	case f == sqltable.FieldToken:
		s.int(it.Token)
	case f == sqltable.FieldHolder:
		s.chars(s.t.def.Holder, it.Holder, whole)
	default:
		// A character set keeps of a text what it can, with question marks for the
		// rest: else the settlement would fail.
		charset := s.charset(s.t.def.LastError)
		switch {
		case charset == "":
			s.val(it.Err)
		case whole:
			s.val(reduced(charset, it.Err))
		default:
			s.utf8(reduced(charset, it.Err))
		}
	}
}

// charset is a column's character set, empty for bytes. What isn't known is
// UTF-8: the server will say.
func (s *statement) charset(name string) string {
	if f := s.c.column(name); f != nil {
		return f.charset
	}
	return "utf8mb4"
}

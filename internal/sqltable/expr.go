package sqltable

import (
	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Expr is a piece of SQL, independent of the database: a sequence of parts.
type Expr []Part

// Part is a part of an Expr; one of the types below.
type Part interface{ part() }

// The parts.
type (
	// SQL is text that all databases understand, without names and values.
	SQL string
	// From is the table with the alias t, as "FROM" wants it. ByKey: its rows are
	// looked up by id (MySQL: FORCE INDEX of the unique one).
	From struct{ ByKey bool }
	// Col is a column of the row as it is before the change: t.name, or, in what a
	// Change sets, whatever the database calls the old value.
	Col string
	// Value is a fixed value of the table's description.
	Value struct{ V claim.Value }
	// Text is a character string.
	Text string
	// Int is an integer of 64 bits.
	Int int64
	// Time is a value of a time column: its integer, or for DateTime and Timestamp
	// Column.Text(N).
	Time struct {
		Column claim.TimeColumn
		N      int64
	}
	// Clock is the server's own clock where the row is changed or read, in microseconds
	// since 1970: not where the statement began, which may have waited since then.
	Clock struct{}
	// Tick is the Clock for tokens. A database that is the process itself gives every
	// reading once, rising, also while its clock is set back.
	Tick struct{}
	// ID is one id of the table's kind, which has been checked.
	ID core.ID
	// IDIn is the condition that t's id is one of these, in every byte.
	IDIn []core.ID
	// ItemField is what an item of a Change has in that field.
	ItemField Field
)

func (SQL) part()       {}
func (From) part()      {}
func (Col) part()       {}
func (Value) part()     {}
func (Text) part()      {}
func (Int) part()       {}
func (Time) part()      {}
func (Clock) part()     {}
func (Tick) part()      {}
func (ID) part()        {}
func (IDIn) part()      {}
func (ItemField) part() {}

// Field is a field of an Item.
type Field uint8

// The fields. Those of instants go with the column whose values they are.
const (
	FieldToken   Field = iota // an integer
	FieldHolder               // printable ASCII, at most 64 bytes
	FieldErr                  // valid UTF-8 without NUL, at most 4 KiB
	FieldDue                  // of Plan.Table.Due.Column
	FieldLease                // of Plan.Table.Lease
	FieldFence                // of Plan.Table.Updated: what it must be now
	FieldUpdated              // of Plan.Table.Updated: what it becomes
)

// Column returns the time column that a field of instants goes with; ok is false
// for the other fields.
func (f Field) Column(t *claim.Table) (c claim.TimeColumn, ok bool) {
	switch f {
	case FieldDue:
		return t.Due.Column, true
	case FieldLease:
		return t.Lease, true
	case FieldFence, FieldUpdated:
		return t.Updated, true
	}
	return claim.TimeColumn{}, false
}

// Item is a row to be changed, with what differs from item to item.
type Item struct {
	ID     core.ID
	Token  int64
	Holder string
	Err    string
	// Instants, as values of their columns.
	Due, Lease, Fence, Updated int64
}

// Integer returns a field that is an integer or an instant.
func (it *Item) Integer(f Field) int64 {
	switch f {
	case FieldToken:
		return it.Token
	case FieldDue:
		return it.Due
	case FieldLease:
		return it.Lease
	case FieldFence:
		return it.Fence
	default:
		return it.Updated
	}
}

// Text returns a field that is text.
func (it *Item) Text(f Field) string {
	if f == FieldHolder {
		return it.Holder
	}
	return it.Err
}

// Assign sets a column of a row.
type Assign struct {
	Column string
	To     Expr
}

// Change is a conditional change of the rows of its items.
type Change struct {
	// Items are sorted by id. With Exact an id may be there several times, with
	// another fence each, at most one of which can match.
	Items []Item
	// Fields are those that Guard and Set use.
	Fields []Field
	Guard  Expr
	Set    []Assign
	// Exact: the caller must know of each item whether its row changed.
	Exact bool
	// Returning are values of the changed rows that the database may return at once.
	Returning []Out
}

// Changes is what a Change did.
type Changes struct {
	// Changed tells for each item whether its row changed; nil where that isn't
	// known (never so for an Exact one). All true may always be said.
	Changed []bool
	// Rows are the values that Returning asked for, by item; nil where the database
	// doesn't return them.
	Rows map[int]Row
}

// Query is a SELECT.
type Query struct {
	Out     []Out
	Rest    Expr // from FROM on
	Current bool // the newest commit, also where a transaction has one snapshot
}

// Out is a column of a query's result.
type Out struct {
	Expr Expr
	As   As
	Time claim.TimeColumn // where As is AsTime
}

// As says how a value is to be read. Null is possible for all.
type As uint8

// The forms.
const (
	AsID    As = iota // Text: the canonical form of an id
	AsText            // Text: the column's text form
	AsInt             // Int
	AsTime            // Int: the value of the time column Out.Time
	AsBytes           // Bytes: the bytes of a text or binary column
)

// Row is a row of a result, a Val for each Out.
type Row []Val

// Val is a value that was read.
type Val struct {
	Null  bool
	Int   int64
	Text  string
	Bytes []byte
}

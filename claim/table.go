package claim

import (
	"time"
)

// Table says which column of a user's own table plays which part, so that the
// row that is claimed is the order, the invoice, the reservation itself. The SQL
// adapters' NewTable gives a [core.Claimer] on it; rows come and go by the user's
// own statements, which stay master of them.
//
// Which columns are there decides the mode, and with it what is promised; see
// [Mode]. The fields Name, ID, State and Due are always needed.
type Table struct {
	// Name is "orders" or "shop.orders" (schema or, on MySQL, database).
	Name string
	// ID is the column of the task's id. It must be unique by itself and NOT NULL.
	ID IDColumn
	// State is the column of the row's state.
	State StateColumn
	// Due says when a pending row is due; it is always needed. Nothing else would keep a
	// sweep from a row before its time, when the index is lost.
	Due DueTime
	// Where are fixed conditions that every row of the queue meets. To all
	// statements a row that doesn't is not there.
	Where []Condition

	// Token, Holder and Lease are the columns of a grant: an integer of 64 bits,
	// text of at least 64 ASCII characters, and the end of the lease. All three make
	// the mode Full. Lease must allow Null, which stands for no lease; where Due.Column
	// isn't set it is also the time until which a pending row backs off.
	Token, Holder string
	Lease         TimeColumn

	// Updated is the column of the row's last change, which every statement writes.
	// In mode StatusUpdated it is the fence and, with LeaseFor, the lease.
	Updated TimeColumn
	// LeaseFor is the length of every lease in mode StatusUpdated, from 1 s to 24 h:
	// a row in processing is taken over when Updated is longer ago.
	// core.New takes it for Options.Lease and refuses another value: two holders'
	// fences could then be the same where the older one's last heartbeat was lost.
	LeaseFor time.Duration

	// Attempts and Crashes are integer columns that count grants which were not
	// released, and those of them whose lease ran out. Without Attempts each process
	// counts failures in its memory. Without Crashes, a crash counts as a failure where
	// Attempts is there, and not at all where it isn't; no number of them makes a row
	// dead.
	Attempts, Crashes string
	// LastError is a text column for the last failure's text, at most 4 KiB.
	LastError string
	// Payload is a column that a handler finds in Task.Payload: text or bytes, which
	// are only read.
	Payload string
	// Kind is a text column with the task's kind, only read. FixedKind is the kind
	// of all rows instead; empty: "".
	Kind, FixedKind string
}

// IDColumn is the column of the task's id.
type IDColumn struct {
	Name string
	Kind IDKind
}

// StateColumn is the column of a row's state, with the values that mean
// something to dueclaim. A row in any other state is the user's: as a task it is
// gone.
type StateColumn struct {
	Name string
	// Pending rows may be claimed. In mode Transition it is the state that the step
	// starts from.
	Pending Value
	// Processing rows are held by a worker. The zero Value, a state that the table
	// doesn't have, makes the mode Transition.
	Processing Value
	// Done is the state of a row whose task was handled; in mode Transition the one
	// that the step leads to.
	Done Value
	// Dead is the state of a row that was given up, for an operator to see. With the
	// zero Value nothing is ever given up: such a row is pending again, as after
	// any failure, and tried again after [DeadPause] (mode Full) or when a sweep
	// finds it.
	Dead Value
}

// DeadPause is when a row is tried again that should be given up but has no
// state for that.
const DeadPause = time.Hour

// DueTime says when a pending row is due: what Column holds, or what Base holds
// plus After.
type DueTime struct {
	// Column holds the due time. A retry and a release write it. Null: never due.
	Column TimeColumn
	// Base is a column of the user's that is only read, such as created_at; the row
	// is due After later. Null: never due.
	Base  TimeColumn
	After time.Duration
}

// Condition is a fixed condition: the column equals the value, or it is Null.
type Condition struct {
	Column string
	Equals Value
	// IsNull, instead of Equals: the column is Null. It is what keeps rows out that are
	// deleted by a time in deleted_at.
	IsNull bool
}

// Mode says what a Table can promise. It follows from the columns that are
// mapped. All workers on a table must be in the same one at a time: no mode knows the
// leases of another.
type Mode uint8

// The modes, the strongest first.
const (
	// Full: token, holder and lease have columns. All promises of the managed table.
	Full Mode = iota + 1
	// StatusUpdated: a state for processing and the time of the last change, which
	// is fence and lease in one.
	StatusUpdated
	// Transition: for work that is one step in the database. A claim only reads.
	Transition
)

// String returns the mode's name.
func (m Mode) String() string {
	switch m {
	case Full:
		return "Full"
	case StatusUpdated:
		return "StatusUpdated"
	case Transition:
		return "Transition"
	default:
		return "Mode(?)"
	}
}

// Mode returns the mode that the mapped columns make.
func (t Table) Mode() Mode {
	switch {
	case t.State.Processing.IsZero():
		return Transition
	case t.Token != "" || t.Holder != "" || t.Lease.Name != "":
		return Full
	default:
		return StatusUpdated
	}
}

// Dated tells whether the row says when a retry is due. Where it doesn't, only
// the index holds back-offs, and sweeps never claim; see core.Undated.
func (t Table) Dated() bool {
	return t.Mode() == Full || t.Mode() == StatusUpdated && t.Due.Written()
}

// NoAhead tells whether a row's back-off may stand where a grant can't tell it any more:
// in the column Lease, which the claim overwrites, or in the index alone. Then nothing is
// claimed before its time; see core.NoAhead.
func (t Table) NoAhead() bool { return t.Mode() == Transition || !t.Due.Written() }

// base tells whether the due time is computed from a column that is only read.
func (d DueTime) base() bool { return d.Base.Name != "" }

// Source returns the column that due times are read from, and what is to be added to
// it.
func (d DueTime) Source() (TimeColumn, time.Duration) {
	if d.base() {
		return d.Base, d.After
	}
	return d.Column, 0
}

// Written tells whether a retry can write the due time.
func (d DueTime) Written() bool { return d.Column.Name != "" }

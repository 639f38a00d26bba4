package conformance

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
)

// SQLAction is what a store asks of the driver.
type SQLAction uint8

// The actions. The zero SQLAction is none of them.
const (
	SQLQuery    SQLAction = iota + 1 // a statement whose rows are read
	SQLExec                          // a statement whose number of rows is read
	SQLBegin                         // the start of a transaction
	SQLCommit                        // its commit
	SQLRollback                      // its rollback
)

// String returns the action's name.
func (a SQLAction) String() string {
	switch a {
	case SQLQuery:
		return "query"
	case SQLExec:
		return "exec"
	case SQLBegin:
		return "begin"
	case SQLCommit:
		return "commit"
	case SQLRollback:
		return "rollback"
	default:
		return "SQLAction(?)"
	}
}

// SQLStep is one thing that the driver is expected to be asked, and its answer.
// Prepared statements have no step of their own: a store that keeps some can't be
// scripted.
//
// A value that is made up at run time, such as a Lease.Holder of core's, is
// written ‹name›: in Text, as an argument (or an element of a []string) and as a
// value in Rows. The first one stands for anything, and from there on ‹name›
// stands for the very same value. ‹any› stands for anything each time.
type SQLStep struct {
	Do SQLAction
	// Text is the exact statement. Runs of white space count as one space.
	Text string
	// Args are the exact arguments, as the store passes them to database/sql; an
	// int stands for an int64.
	Args []driver.Value
	// Columns names the columns of Rows, for a store that asks for the names.
	Columns []string
	// Rows are the answer to an SQLQuery.
	Rows [][]driver.Value
	// Affected is the answer to an SQLExec.
	Affected int64
	// Err is the answer instead.
	Err error
	// AfterRows: Err comes behind the rows, when the last one has been read.
	AfterRows bool
	// OneRow marks a query of which one row is read and nothing behind it, as
	// QueryRow does; that is right only for one that changes nothing.
	OneRow bool
	// Once marks what a store asks until it has been answered once, and then no
	// more: a look at the server's version, say. It doesn't count as a cost.
	Once bool
}

// String describes the step in one line.
func (s SQLStep) String() string {
	text := strings.Join(strings.Fields(s.Text), " ")
	if len(text) > 120 {
		text = text[:120] + "…"
	}
	return strings.TrimSpace(fmt.Sprintf("%v %s", s.Do, text))
}

// SQLPlay is a database that plays steps.
type SQLPlay interface {
	// DB is the database. The play closes it when the test is over.
	DB() *sql.DB
	// Asked returns how many steps have been asked for, unexpected ones among them.
	Asked() int
	// Err returns nil when exactly the expected steps were asked, and all of them.
	Err() error
}

package pgclaim_test

import (
	"database/sql/driver"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dueclaim/dueclaim/conformance"
)

// The scripts are written by hand and share no code with the Store: a guard that
// goes missing there is missed here.
//
// A *sql.DB whose driver isn't pgx/stdlib runs the statements in
// pgx.QueryExecModeExec, which then is the first argument of each.

// present is the suite's T, in milliseconds since 1970.
const present int64 = 1893553445678

func ms(offset int64) int64 { return present + offset }

type row = []driver.Value

// asks is a statement of the queue "default", its further arguments, and the rows
// that it returns.
func asks(text string, args []driver.Value, rows ...row) conformance.SQLStep {
	return conformance.SQLStep{
		Do: conformance.SQLQuery, Text: text, Rows: rows,
		Args: append([]driver.Value{pgx.QueryExecModeExec, "default"}, args...),
	}
}

func script(steps ...conformance.SQLStep) []conformance.SQLStep { return steps }

// inTx are steps between the caller's begin and commit. What mode his connections
// use is known when the Store has looked at one; here it has not.
func inTx(steps ...conformance.SQLStep) []conformance.SQLStep {
	return append(append([]conformance.SQLStep{{Do: conformance.SQLBegin}}, steps...), conformance.SQLStep{Do: conformance.SQLCommit})
}

// waits is a statement within the caller's transaction: it doesn't pass over
// locked rows, and finds what was written while it waited.
func waits(step conformance.SQLStep) conformance.SQLStep {
	step.Text = strings.NewReplacer(" SKIP LOCKED", "", "t.ctid = ANY (ARRAY(SELECT place FROM picked))",
		"t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked))").Replace(step.Text)
	return step
}

// returned are rows of one id each.
func returned(ids ...string) []row {
	rows := make([]row, len(ids))
	for i, id := range ids {
		rows[i] = row{id}
	}
	return rows
}

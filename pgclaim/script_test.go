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
	step.Text = strings.NewReplacer(" SKIP LOCKED", "", `t.ctid = ANY (ARRAY(SELECT place FROM picked)) AND t.tableoid = '"dueclaim_tasks"'::regclass`,
		"t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked))").Replace(step.Text)
	return step
}

// changed is the id of a row that was changed, with an error where that came after By,
// the argument of that number.
func changed(by string) string {
	return `CASE WHEN clock_timestamp() <= to_timestamp(` + by + `::float8) THEN t.id ELSE encode('', 'dueclaim: the call had been given up before ' || t.id) END`
}

// What stands beside the conditions of a statement.
const (
	here    = ` AND t.tableoid = '"dueclaim_tasks"'::regclass`
	durable = `(SELECT current_setting('synchronous_standby_names') = '' OR pg_logical_emit_message(true, 'dueclaim', '') IS NOT NULL)`
	hex     = ` AND (SELECT set_config('bytea_output', 'hex', true)) = 'hex'`
	// never is the By of a call that has none.
	never float64 = 253402300799
)

// returned are rows of one id each.
func returned(ids ...string) []row {
	rows := make([]row, len(ids))
	for i, id := range ids {
		rows[i] = row{id}
	}
	return rows
}

package mysqlclaim_test

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dueclaim/dueclaim/conformance"
)

// The scripts are written by hand, value by value, and share no code with the
// Store: a guard that goes missing there is missed here. The Store writes its
// values as literals into the statement, so there are no arguments to compare;
// they are a part of the text.
//
// In a text {t} is the table, and T, T+1000, T-500 … are milliseconds around the
// suite's present.

// present is the suite's T.
const present int64 = 1893553445678

func ms(offset int64) int64 { return present + offset }

var instant = regexp.MustCompile(`\bT([+-]\d+)?\b`)

func filled(text string) string {
	text = strings.ReplaceAll(text, "{t}", "`dueclaim_tasks`")
	return instant.ReplaceAllStringFunc(text, func(s string) string {
		offset, _ := strconv.ParseInt(strings.TrimPrefix(s, "T"), 10, 64) // "": 0
		return strconv.FormatInt(ms(offset), 10)
	})
}

// changes is a statement that changes n rows.
func changes(n int64, text string) conformance.SQLStep {
	return conformance.SQLStep{Do: conformance.SQLExec, Text: filled(text), Affected: n}
}

// fails is a statement that the server refuses.
func fails(err error, text string) conformance.SQLStep {
	return conformance.SQLStep{Do: conformance.SQLExec, Text: filled(text), Err: err}
}

// reads is a query and its rows.
func reads(text string, rows ...[]driver.Value) conformance.SQLStep {
	return conformance.SQLStep{Do: conformance.SQLQuery, Text: filled(text), Rows: rows}
}

type row = []driver.Value

// fit is the look at the server and the session with which a fresh Store begins.
var fit = conformance.SQLStep{
	Do: conformance.SQLQuery, Once: true,
	Text: "SELECT CAST(SLEEP(0.001) AS CHAR), VERSION(), CAST(@@autocommit AS CHAR), CAST(@@read_only AS CHAR), CAST(@@innodb_read_only AS CHAR), " +
		"CAST(@@completion_type AS CHAR), /*!80000 @@transaction_isolation *//*M! @@tx_isolation */, CAST(SYSDATE(6) = NOW(6) AS CHAR)",
	Rows: []row{{0, "8.0.36", "1", "0", "0", "NO_CHAIN", "REPEATABLE-READ", 0}},
}

// script begins with the look at the server. Its statements set what they need.
func script(steps ...conformance.SQLStep) []conformance.SQLStep {
	return append([]conformance.SQLStep{fit}, setting(alone, steps)...)
}

// inTx are steps between the caller's begin and commit. How long they wait is the caller's.
func inTx(steps ...conformance.SQLStep) []conformance.SQLStep {
	return append(append([]conformance.SQLStep{{Do: conformance.SQLBegin}, fit}, setting("", steps)...), conformance.SQLStep{Do: conformance.SQLCommit})
}

const alone = "SET_VAR(lock_wait_timeout = 1) "

// setting puts into statements which session variables they set for themselves.
func setting(more string, steps []conformance.SQLStep) []conformance.SQLStep {
	steps = slices.Clone(steps)
	for i := range steps {
		s := &steps[i]
		verb, rest, _ := strings.Cut(s.Text, " ")
		if s.Do == conformance.SQLQuery {
			s.Text = verb + " /*+ " + more + "SET_VAR(sql_select_limit = 18446744073709551615) */ " + rest
		} else {
			s.Text = verb + " /*+ " + more + "SET_VAR(sql_safe_updates = 0) */ " + rest
		}
	}
	return steps
}

// readBack reads the state of rows; each has id, status, due, token, holder,
// lease end and call id.
func readBack(ids string, rows ...row) conformance.SQLStep {
	return reads("SELECT id, status, COALESCE(due, 0), token, holder, lease_until, call_id FROM {t} FORCE INDEX (PRIMARY) "+
		"WHERE queue = _binary'default' AND id IN ("+ids+")", rows...)
}

// locked is a read-back within the caller's transaction.
func locked(step conformance.SQLStep) conformance.SQLStep {
	step.Text += " FOR UPDATE"
	return step
}

// waits is a changing statement within the caller's transaction: it doesn't pass
// over locked rows.
func waits(step conformance.SQLStep) conformance.SQLStep {
	step.Text = strings.ReplaceAll(step.Text, " SKIP LOCKED", "")
	return step
}

// target joins the locked rows with those to change.
const target = " STRAIGHT_JOIN {t} AS t FORCE INDEX (PRIMARY) ON t.queue = _binary'default' AND t.id = was.id"

// granted is the table of rows that run under grants, as a condition.
func granted(grants string, n int, more string) string {
	return fmt.Sprintf("(SELECT id FROM {t} FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND status = 'running' AND (%s)%s LIMIT %d FOR UPDATE SKIP LOCKED) AS was",
		grants, more, n)
}

// held is the table of rows that run under the grants in v.
func held(columns, v string, n int, more string) string {
	return fmt.Sprintf("(SELECT %s FROM (%s) AS v STRAIGHT_JOIN {t} AS b FORCE INDEX (PRIMARY) ON b.queue = _binary'default' AND b.id = v.id "+
		"WHERE b.status = 'running' AND b.token = v.token AND b.holder = v.holder%s LIMIT %d FOR UPDATE SKIP LOCKED) AS was"+target, columns, v, more, n)
}

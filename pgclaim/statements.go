package pgclaim

import (
	"strings"
	"time"
)

// statements holds the SQL text of each step, made once for a table.
//
// Three habits keep every access by primary key whatever the statistics say:
//
//   - The due index is partial (due IS NOT NULL). Conditions on due stand inside
//     coalesce, from which the planner can't tell that due isn't NULL, so that the
//     index is no candidate at all. Only Waiting says "due IS NOT NULL".
//   - Ids are looked up one by one in a LATERAL subquery that locks, which the
//     planner can't turn into a join over the whole table.
//   - The writing half finds its rows by an array that is made of the locking half's,
//     of unknown length to the planner, which takes it for ten. A claim, an extension
//     and a settlement go by ctid, where the rows were locked: a third less work than
//     by the key. A row has a ctid of its own in a plain table only. Migrate and
//     CheckSetup look for another one; where a table is given parts or children later,
//     the condition on tableoid leaves their rows alone.
//
// The locking half sees each row's newest version and checks the whole condition on
// it. By ctid the writing half sees what was committed when the statement began: a row
// that changed in between, a matter of milliseconds, is left as a locked one is. In
// the caller's transaction, which waits for locks, that would be no answer: there the
// writing half goes by id and finds the newest version too.
//
// Two more conditions are evaluated while a statement runs:
//
//   - {inTime} is the id of a row that was just changed, and an error when the call's By
//     has passed by then, which undoes the whole statement. It stands in RETURNING, so
//     that no wait comes after it: not the one for a lock on the table, nor that of an
//     INSERT for another's uncommitted one of the same id.
//   - {durable} makes a reading, from whose rows a repeat tells that an earlier try took
//     effect, wait for a synchronous standby, as the commit of that try should have: one
//     that was cancelled while it waited has committed all the same. It writes a record of
//     some bytes into the log, and only where there is such a standby.
type statements struct {
	claim, seeClaims             string
	extend                       string
	settle, settleTx             string
	deleteDone, deleteDoneTx     string
	seeGrants                    string
	insert, insertAgain          string
	seeInserts                   string
	cancel, cancelDelete, seeAll string
	reschedule                   string
	waiting, purge               string
}

func newStatements(table string) statements {
	const (
		byPlace = `t.ctid = ANY (ARRAY(SELECT place FROM picked)) AND t.tableoid = '{table}'::regclass`
		byID    = `t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked))`
	)
	parts := strings.NewReplacer(
		"{found}", byPlace,
		"{durable}", durableSQL,
		"{hex}", hexSQL,
		"{claimable}", `coalesce(t.due, 9223372036854775807) <= $4::bigint
       AND (t.status = 'pending' OR (t.status = 'running' AND t.lease_until < $5::bigint AND t.holder <> $3::text))`,
		"{granted}", `t.token = a.token AND t.holder = a.holder AND t.status = 'running'`,
		"{live}", `t.status IN ('pending', 'running')`,
		"{given}", `SELECT $1::text, a.id, 'pending', a.due, a.due, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, a.max_attempts, a.kind, a.payload, a.meta, $3::text, $4::bigint
  FROM unnest($2::text[], $5::bigint[], $6::integer[], $7::text[], $8::bytea[], $9::bytea[])
       AS a(id, due, max_attempts, kind, payload, meta)`,
	)
	names := strings.NewReplacer("{table}", table)
	fill := func(statement string) string { return names.Replace(parts.Replace(statement)) }
	waits := strings.NewReplacer(" SKIP LOCKED", "", names.Replace(byPlace), byID).Replace
	return statements{
		claim: fill(claimSQL), seeClaims: fill(seeClaimsSQL),
		extend: fill(extendSQL),
		settle: fill(settleSQL), settleTx: waits(fill(settleSQL)),
		deleteDone: fill(deleteDoneSQL), deleteDoneTx: waits(fill(deleteDoneSQL)),
		seeGrants: fill(seeGrantsSQL),
		insert:    fill(insertSQL), insertAgain: fill(insertAgainSQL), seeInserts: fill(seeInsertsSQL),
		cancel: fill(cancelSQL), cancelDelete: fill(cancelDeleteSQL), seeAll: fill(seeAllSQL),
		reschedule: fill(rescheduleSQL),
		waiting:    fill(waitingSQL), purge: fill(purgeSQL),
	}
}

const (
	durableSQL = `(SELECT current_setting('synchronous_standby_names') = '' OR pg_logical_emit_message(true, 'dueclaim', '') IS NOT NULL)`
	// hexSQL sets, for the statement, the form in which pgx reads bytes that travel as text.
	hexSQL = `(SELECT set_config('bytea_output', 'hex', true)) = 'hex'`
)

// inTime fails, as there is no such encoding, with a sentence for the server's log.
const inTime = `CASE WHEN clock_timestamp() <= to_timestamp({by}) THEN t.id ELSE encode('', '` + tooLate + ` before ' || t.id) END`

const tooLate = "dueclaim: the call had been given up"

// by says which argument of a statement is its By.
func by(argument, statement string) string {
	return strings.ReplaceAll(statement, "{inTime}", strings.ReplaceAll(inTime, "{by}", argument+"::float8"))
}

// byOf is the argument that {inTime} goes by, in seconds; without a By it is far away.
func byOf(by time.Time) float64 {
	if by.IsZero() {
		return never
	}
	return min(float64(by.UnixMilli())/1000, never)
}

const never = 253_402_300_799 // the end of the year 9999

// nowSQL: statement_timestamp, because now() is the start of a transaction.
const nowSQL = `SELECT floor(extract(epoch FROM statement_timestamp()) * 1000000)::bigint`

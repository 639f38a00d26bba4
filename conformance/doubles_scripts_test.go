package conformance_test

import (
	"database/sql/driver"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dueclaim/dueclaim/conformance"
)

// What core makes up at run time stands as ‹name›: the holder and the lease. The
// store must send the very same ones in each statement.

func mysqlText(text string) string { return strings.ReplaceAll(text, "{t}", "`dueclaim_tasks`") }

type row = []driver.Value

var lifeOnMySQL = []conformance.SQLStep{
	// ScheduleCall
	{
		Do: conformance.SQLQuery, Rows: []row{{"0", "9.7.0", "1", "OFF", "0", "NO_CHAIN", "REPEATABLE-READ", "0"}},
		Text: "SELECT CAST(SLEEP(0.001) AS CHAR), VERSION(), CAST(@@autocommit AS CHAR), CAST(@@read_only AS CHAR), CAST(@@innodb_read_only AS CHAR), " +
			"CAST(@@completion_type AS CHAR), /*!80000 @@transaction_isolation *//*M! @@tx_isolation */, CAST(SYSDATE(6) = NOW(6) AS CHAR)",
	},
	{
		Do: conformance.SQLExec, Affected: 1,
		Text: mysqlText("INSERT " + mysqlSets + "INTO {t} (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at) " +
			"WITH v (id, due, max_attempts, kind, payload, meta) AS (VALUES ROW(_binary'order-17', 1893553455678, 7, _binary'mail', _binary'to a', x'')) " +
			"SELECT _binary'default', v.id, 'pending', v.due, v.due, IF(" + mysqlClock + " < c.now + 50000, c.now, " + mysqlClock + "), v.max_attempts, v.kind, v.payload, v.meta, _binary'call-1', 1893553445678 " +
			"FROM (SELECT " + mysqlClock + " AS now) AS c STRAIGHT_JOIN v WHERE TRUE"),
	},
	// Tick, before it is due
	mysqlWaiting(),
	// Tick, when it is due
	mysqlWaiting(row{"order-17", due.UnixMilli()}),
	{
		Do: conformance.SQLExec, Affected: 1,
		Text: mysqlText("UPDATE " + mysqlSets + "(SELECT id, status, token, attempts, crashes FROM {t} FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN (_binary'order-17') " +
			"AND due <= ‹due by› AND (status = 'pending' OR (status = 'running' AND lease_until < ‹lapsed› AND holder <> _binary'‹holder›')) LIMIT 1 FOR UPDATE SKIP LOCKED) AS was" +
			mysqlTarget + " SET t.crashes = was.crashes + (was.status = 'running'), t.attempts = was.attempts + 1, t.token = was.token + 1, t.status = 'running', " +
			"t.holder = _binary'‹holder›', t.lease_until = ‹until›"),
	},
	{
		Do: conformance.SQLQuery,
		Text: mysqlText("SELECT " + mysqlReads + "id, status, COALESCE(due, 0), planned, token, holder, lease_until, attempts, crashes, max_attempts, kind, " +
			"IF(holder = _binary'‹holder›', payload, NULL), IF(holder = _binary'‹holder›', meta, NULL) FROM {t} FORCE INDEX (PRIMARY) " +
			"WHERE queue = _binary'default' AND id IN (_binary'order-17')"),
		Rows: []row{{"order-17", "running", due.UnixMilli(), due.UnixMilli(), 42, "‹holder›", "‹until›", 1, 0, 7, "mail", []byte("to a"), nil}},
	},
	{
		Do: conformance.SQLExec, Affected: 1,
		Text: mysqlText("UPDATE " + mysqlSets + "(SELECT id FROM {t} FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND status = 'running' " +
			"AND (token = 42 AND holder = _binary'‹holder›' AND id IN (_binary'order-17')) LIMIT 1 FOR UPDATE SKIP LOCKED) AS was" +
			mysqlTarget + " SET t.status = 'done', t.due = NULL, t.lease_until = 0, t.finished_at = ‹finished›"),
	},
}

// What statements set for themselves.
const (
	mysqlSets  = "/*+ SET_VAR(lock_wait_timeout = 1) SET_VAR(sql_safe_updates = 0) */ "
	mysqlReads = "/*+ SET_VAR(lock_wait_timeout = 1) SET_VAR(sql_select_limit = 18446744073709551615) */ "
)

const mysqlClock = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)))"

const mysqlTarget = " STRAIGHT_JOIN {t} AS t FORCE INDEX (PRIMARY) ON t.queue = _binary'default' AND t.id = was.id"

func mysqlWaiting(rows ...row) conformance.SQLStep {
	return conformance.SQLStep{
		Do: conformance.SQLQuery, Rows: rows,
		Text: mysqlText("SELECT " + mysqlReads + "id, due FROM {t} FORCE INDEX (dueclaim_due) WHERE queue = _binary'default' AND due < ‹any› " +
			"AND (status = 'pending' OR (status = 'running' AND lease_until < ‹any›)) ORDER BY due, finished_at, id LIMIT ‹any›"),
	}
}

var lifeOnPostgres = []conformance.SQLStep{
	// ScheduleCall
	pgAsk(`INSERT INTO "dueclaim_tasks" AS t (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at)
		SELECT $1::text, a.id, 'pending', a.due, a.due, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, a.max_attempts, a.kind, a.payload, a.meta, $3::text, $4::bigint
		FROM unnest($2::text[], $5::bigint[], $6::integer[], $7::text[], $8::bytea[], $9::bytea[]) AS a(id, due, max_attempts, kind, payload, meta)
		ON CONFLICT (queue, id) DO NOTHING RETURNING `+pgInTime("t.id", "$10"),
		row{"default", []string{"order-17"}, "call-1", present.UnixMilli(), []int64{due.UnixMilli()}, []int32{7}, []string{"mail"}, [][]byte{[]byte("to a")}, [][]byte{{}}, "‹any›"},
		row{"order-17"}),
	// Tick, before it is due
	pgWaiting(),
	// Tick, when it is due
	pgWaiting(row{"order-17", due.UnixMilli()}),
	pgAsk(`WITH picked AS MATERIALIZED (
		SELECT r.place FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
		SELECT t.ctid AS place FROM "dueclaim_tasks" AS t WHERE t.queue = $1::text AND t.id = a.id AND coalesce(t.due, 9223372036854775807) <= $4::bigint
		AND (t.status = 'pending' OR (t.status = 'running' AND t.lease_until < $5::bigint AND t.holder <> $3::text)) FOR NO KEY UPDATE SKIP LOCKED) AS r)
		UPDATE "dueclaim_tasks" AS t SET status = 'running', token = t.token + 1, holder = $3::text, lease_until = $6::bigint,
		attempts = t.attempts + 1, crashes = t.crashes + CASE t.status WHEN 'running' THEN 1 ELSE 0 END
		WHERE t.ctid = ANY (ARRAY(SELECT place FROM picked)) AND t.tableoid = '"dueclaim_tasks"'::regclass AND coalesce(t.due, 9223372036854775807) <= $4::bigint
		AND (t.status = 'pending' OR (t.status = 'running' AND t.lease_until < $5::bigint AND t.holder <> $3::text))
		AND (SELECT set_config('bytea_output', 'hex', true)) = 'hex'
		RETURNING `+pgInTime("t.id", "$7")+`, t.due, t.planned, t.token, t.attempts, t.crashes, t.max_attempts, t.kind, t.payload, t.meta`,
		row{"default", []string{"order-17"}, "‹holder›", "‹due by›", "‹lapsed›", "‹until›", "‹any›"},
		row{"order-17", due.UnixMilli(), due.UnixMilli(), 42, 1, 0, 7, "mail", []byte("to a"), nil}),
	pgAsk(`WITH picked AS MATERIALIZED (
		SELECT a.*, r.place FROM unnest($2::text[], $3::bigint[], $4::text[], $6::text[], $7::bigint[], $8::boolean[], $9::text[])
		AS a(id, token, holder, status, due, released, err) CROSS JOIN LATERAL (
		SELECT t.ctid AS place FROM "dueclaim_tasks" AS t
		WHERE t.queue = $1::text AND t.id = a.id AND t.token = a.token AND t.holder = a.holder AND t.status = 'running' FOR NO KEY UPDATE SKIP LOCKED) AS r)
		UPDATE "dueclaim_tasks" AS t SET status = a.status, lease_until = 0, due = CASE a.status WHEN 'pending' THEN a.due END,
		planned = CASE WHEN a.status = 'pending' AND NOT a.released THEN a.due ELSE t.planned END,
		attempts = t.attempts - CASE WHEN a.released THEN 1 ELSE 0 END,
		last_error = CASE WHEN a.status = 'dead' OR (a.status = 'pending' AND NOT a.released) THEN a.err ELSE t.last_error END,
		finished_at = CASE WHEN a.status <> 'pending' THEN $5::bigint END FROM picked AS a
		WHERE t.ctid = ANY (ARRAY(SELECT place FROM picked)) AND t.tableoid = '"dueclaim_tasks"'::regclass AND t.id = a.id AND t.token = a.token AND t.holder = a.holder AND t.status = 'running'
		RETURNING t.id`,
		row{"default", []string{"order-17"}, []int64{42}, []string{"‹holder›"}, "‹finished›", []string{"done"}, []int64{0}, []bool{false}, []string{""}},
		row{"order-17"}),
}

// pgAsk is a statement as a *sql.DB sends it whose driver isn't pgx/stdlib.
func pgAsk(text string, args row, rows ...row) conformance.SQLStep {
	return conformance.SQLStep{Do: conformance.SQLQuery, Text: text, Args: append(row{pgx.QueryExecModeExec}, args...), Rows: rows}
}

// pgInTime is a column that fails where the call comes after By.
func pgInTime(column, by string) string {
	return "CASE WHEN clock_timestamp() <= to_timestamp(" + by + "::float8) THEN " + column +
		" ELSE encode('', 'dueclaim: the call had been given up before ' || " + column + ") END"
}

func pgWaiting(rows ...row) conformance.SQLStep {
	return pgAsk(`SELECT t.id, t.due FROM "dueclaim_tasks" AS t
		WHERE (t.queue, t.due, t.id) > ((SELECT $1::text), (SELECT $2::bigint), (SELECT $3::text))
		AND (t.queue, t.due) < ((SELECT $1::text), (SELECT $4::bigint)) AND t.due IS NOT NULL
		AND CASE t.status WHEN 'running' THEN t.lease_until < $5::bigint ELSE t.status = 'pending' END
		ORDER BY t.queue, t.due, t.id LIMIT (SELECT $6::bigint)`,
		row{"default", int64(-1), "", "‹any›", "‹any›", "‹any›"}, rows...)
}

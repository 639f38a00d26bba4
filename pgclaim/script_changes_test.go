package pgclaim_test

import (
	"database/sql/driver"

	"github.com/jackc/pgx/v5"

	"github.com/dueclaim/dueclaim/conformance"
)

var cancelText = `
WITH picked AS MATERIALIZED (
SELECT r.id FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
SELECT t.id FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = a.id AND t.status IN ('pending', 'running')
FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE "dueclaim_tasks" AS t
SET status = 'cancelled', due = NULL, finished_at = $3::bigint,
lease_until = CASE WHEN t.status = 'running' AND t.lease_until >= $3::bigint THEN t.lease_until ELSE 0 END
WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked)) AND t.status IN ('pending', 'running')
RETURNING ` + changed("$4") + `, t.status, t.lease_until`

var cancelEraseText = `
WITH picked AS MATERIALIZED (
SELECT r.id FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
SELECT t.id FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = a.id AND t.status IN ('pending', 'running')
FOR UPDATE SKIP LOCKED) AS r)
DELETE FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked)) AND t.status IN ('pending', 'running')
RETURNING ` + changed("$4") + `, 'cancelled'::text, CASE WHEN t.status = 'running' AND t.lease_until >= $3::bigint THEN t.lease_until ELSE 0 END`

// cancel cancels ids and returns id, status and lease end of what was changed.
func cancel(ids []string, rows ...row) conformance.SQLStep {
	return asks(cancelText, []driver.Value{ids, ms(100), never}, rows...)
}

func cancelErase(ids []string, rows ...row) conformance.SQLStep {
	return asks(cancelEraseText, []driver.Value{ids, ms(100), never}, rows...)
}

// allSeen reads what a statement left alone: id, status, lease end and due.
func allSeen(ids []string, rows ...row) conformance.SQLStep {
	return asks(`SELECT t.id, t.status, t.lease_until, coalesce(t.due, 0) FROM "dueclaim_tasks" AS t
		WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[]))) AND `+durable, []driver.Value{ids}, rows...)
}

var cancelledRows = []row{{"a", "cancelled", 0}, {"b", "cancelled", ms(9000)}, {"c", "cancelled", 0}}

var cancels = map[string][]conformance.SQLStep{
	"cancel/fates": script(cancel([]string{"a", "b", "c", "d", "e"}, cancelledRows...),
		allSeen([]string{"d", "e"}, row{"d", "dead", 0, 0})),
	"cancel/repeat": script(cancel([]string{"a", "b", "c", "d", "e"}), allSeen([]string{"a", "b", "c", "d", "e"},
		row{"a", "cancelled", 0, 0}, row{"b", "cancelled", ms(9000), 0}, row{"c", "cancelled", 0, 0}, row{"d", "dead", 0, 0})),
	"cancel/busy": script(cancel([]string{"a", "b"}, row{"a", "cancelled", 0}),
		allSeen([]string{"b"}, row{"b", "pending", 0, ms(1000)})),
}

var rescheduleText = `
WITH picked AS MATERIALIZED (
SELECT a.* FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS a(id, old, new) CROSS JOIN LATERAL (
SELECT t.id FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = a.id AND t.status = 'pending'
AND (a.old = -1 OR coalesce(t.due, -2) = a.old) AND coalesce(t.due, -2) <> a.new
FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE "dueclaim_tasks" AS t SET due = a.new, planned = a.new
FROM picked AS a
WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked)) AND t.id = a.id AND t.status = 'pending'
AND (a.old = -1 OR coalesce(t.due, -2) = a.old) AND coalesce(t.due, -2) <> a.new
RETURNING ` + changed("$5")

func moveBoth(moved ...string) conformance.SQLStep {
	return asks(rescheduleText, []driver.Value{
		[]string{"a", "b"}, []int64{ms(1000), -1}, []int64{ms(5000), ms(6000)}, never,
	}, returned(moved...)...)
}

var reschedules = map[string][]conformance.SQLStep{
	"reschedule/all": script(moveBoth("a", "b")),
	"reschedule/repeat": script(moveBoth(), allSeen([]string{"a", "b"},
		row{"a", "pending", 0, ms(5000)}, row{"b", "pending", 0, ms(6000)})),
	"reschedule/refused": script(
		asks(rescheduleText, []driver.Value{
			[]string{"a", "b", "c", "d"}, []int64{ms(1000), ms(1000), ms(1000), ms(1000)}, []int64{ms(5000), ms(5000), ms(5000), ms(5000)}, never,
		}, row{"a"}),
		allSeen([]string{"b", "c", "d"}, row{"b", "pending", 0, ms(2000)}, row{"c", "running", ms(9000), ms(1000)})),
	"reschedule/busy": script(moveBoth("a"), allSeen([]string{"b"}, row{"b", "pending", 0, ms(2000)})),
}

const waitingText = `
SELECT t.id, t.due FROM "dueclaim_tasks" AS t
WHERE (t.queue, t.due, t.id) > ((SELECT $1::text), (SELECT $2::bigint), (SELECT $3::text))
AND (t.queue, t.due) < ((SELECT $1::text), (SELECT $4::bigint)) AND t.due IS NOT NULL
AND CASE t.status WHEN 'running' THEN t.lease_until < $5::bigint ELSE t.status = 'pending' END
ORDER BY t.queue, t.due, t.id LIMIT (SELECT $6::bigint)`

const purgeText = `
WITH picked AS MATERIALIZED (
SELECT t.id FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.finished_at IS NOT NULL AND t.finished_at < $2::bigint
AND t.status IN ('done', 'cancelled')
ORDER BY t.finished_at LIMIT $3::bigint
FOR UPDATE SKIP LOCKED)
DELETE FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked))
AND coalesce(t.finished_at, $2::bigint) < $2::bigint AND t.status IN ('done', 'cancelled')
RETURNING t.id`

func waiting(afterDue int64, afterID string, limit int64, rows ...row) conformance.SQLStep {
	return asks(waitingText, []driver.Value{afterDue, afterID, ms(10000), present, limit}, rows...)
}

func purge(limit int64, rows ...row) conformance.SQLStep {
	return asks(purgeText, []driver.Value{present, limit}, rows...)
}

var sweeps = map[string][]conformance.SQLStep{
	"waiting/first-page": script(waiting(-1, "", 3, row{"a", ms(-1000)}, row{"b", ms(-500)})),
	"waiting/next-page":  script(waiting(ms(-500), "b", 3, row{"c", ms(-500)})),
	"waiting/none":       script(waiting(-1, "", 3)),
	"clock/now": {{
		Do: conformance.SQLQuery, Args: []driver.Value{pgx.QueryExecModeExec}, Rows: []row{{present * 1000}},
		Text: "SELECT floor(extract(epoch FROM statement_timestamp()) * 1000000)::bigint",
	}},
	"purge/some": script(purge(10, row{"a"}, row{"b"})),
	"purge/none": script(purge(10)),
}

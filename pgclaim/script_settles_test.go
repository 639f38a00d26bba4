package pgclaim_test

import (
	"database/sql/driver"
	"maps"

	"github.com/dueclaim/dueclaim/conformance"
)

var extendText = `
WITH picked AS MATERIALIZED (
SELECT r.place FROM unnest($2::text[], $3::bigint[], $4::text[]) AS a(id, token, holder) CROSS JOIN LATERAL (
SELECT t.ctid AS place FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = a.id AND t.token = a.token AND t.holder = a.holder AND t.status = 'running' AND t.lease_until < $5::bigint
FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE "dueclaim_tasks" AS t SET lease_until = $5::bigint
WHERE t.ctid = ANY (ARRAY(SELECT place FROM picked))` + here + ` AND t.status = 'running' AND t.lease_until < $5::bigint
RETURNING t.id`

// grants are the arguments for a (token 42), b (8) and c (5).
func grants(n int) []driver.Value {
	return []driver.Value{
		[]string{"a", "b", "c"}[:n], []int64{42, 8, 5}[:n], []string{"holder-1", "holder-1", "holder-1"}[:n],
	}
}

func extend(grants []driver.Value, extended ...string) conformance.SQLStep {
	return asks(extendText, append(grants, ms(60000)), returned(extended...)...)
}

// grantsSeen reads what a statement on grants left alone: id, status, token,
// holder and lease end.
func grantsSeen(ids []string, rows ...row) conformance.SQLStep {
	return asks(`SELECT t.id, t.status, t.token, t.holder, t.lease_until FROM "dueclaim_tasks" AS t
		WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[]))) AND `+durable, []driver.Value{ids}, rows...)
}

// What may have become of b.
var (
	runsB      = row{"b", "running", 8, "holder-1", ms(30000)}
	newerB     = row{"b", "running", 9, "holder-0", ms(9000)}
	doneB      = row{"b", "done", 8, "holder-1", 0}
	cancelledB = row{"b", "cancelled", 8, "holder-1", ms(30000)}
)

var extends = map[string][]conformance.SQLStep{
	"extend/all": script(extend(grants(2), "a", "b")),
	"extend/repeat": script(extend(grants(2)), grantsSeen([]string{"a", "b"},
		row{"a", "running", 42, "holder-1", ms(60000)}, row{"b", "running", 8, "holder-1", ms(60000)})),
	"extend/lost": script(extend(grants(3), "a"), grantsSeen([]string{"b", "c"}, newerB)),
	"extend/busy": script(extend(grants(2), "a"), grantsSeen([]string{"b"}, runsB)),
}

var settleText = `
WITH picked AS MATERIALIZED (
SELECT a.*, r.place FROM unnest($2::text[], $3::bigint[], $4::text[], $6::text[], $7::bigint[], $8::boolean[], $9::text[])
AS a(id, token, holder, status, due, released, err) CROSS JOIN LATERAL (
SELECT t.ctid AS place FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = a.id AND t.token = a.token AND t.holder = a.holder AND t.status = 'running'
FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE "dueclaim_tasks" AS t
SET status = a.status, lease_until = 0,
due = CASE a.status WHEN 'pending' THEN a.due END,
planned = CASE WHEN a.status = 'pending' AND NOT a.released THEN a.due ELSE t.planned END,
attempts = t.attempts - CASE WHEN a.released THEN 1 ELSE 0 END,
last_error = CASE WHEN a.status = 'dead' OR (a.status = 'pending' AND NOT a.released) THEN a.err ELSE t.last_error END,
finished_at = CASE WHEN a.status <> 'pending' THEN $5::bigint END
FROM picked AS a
WHERE t.ctid = ANY (ARRAY(SELECT place FROM picked))` + here + ` AND t.id = a.id AND t.token = a.token AND t.holder = a.holder AND t.status = 'running'
RETURNING t.id`

var eraseText = `
WITH picked AS MATERIALIZED (
SELECT a.id, r.place FROM unnest($2::text[], $3::bigint[], $4::text[]) AS a(id, token, holder) CROSS JOIN LATERAL (
SELECT t.ctid AS place FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = a.id AND t.token = a.token AND t.holder = a.holder AND t.status = 'running'
FOR UPDATE SKIP LOCKED) AS r)
DELETE FROM "dueclaim_tasks" AS t
WHERE t.ctid = ANY (ARRAY(SELECT place FROM picked))` + here + ` AND t.status = 'running'
RETURNING t.id`

// settle settles grants with these states, due times, releases and errors.
func settle(grants []driver.Value, states []string, dues []int64, released []bool, errs []string, settled ...string) conformance.SQLStep {
	return asks(settleText, append(grants, ms(100), states, dues, released, errs), returned(settled...)...)
}

func finish(settled ...string) conformance.SQLStep {
	return settle(grants(2), []string{"done", "done"}, []int64{0, 0}, []bool{false, false}, []string{"", ""}, settled...)
}

func erase(erased ...string) conformance.SQLStep {
	return asks(eraseText, grants(2), returned(erased...)...)
}

var settles = map[string][]conformance.SQLStep{
	"settle/done":     script(finish("a", "b")),
	"settle/retry":    script(settle(grants(1), []string{"pending"}, []int64{ms(5000)}, []bool{false}, []string{"it failed"}, "a")),
	"settle/dead":     script(settle(grants(1), []string{"dead"}, []int64{0}, []bool{false}, []string{"given up"}, "a")),
	"settle/released": script(settle(grants(1), []string{"pending"}, []int64{ms(5000)}, []bool{true}, []string{""}, "a")),
	"settle/mixed": script(settle(
		[]driver.Value{[]string{"a", "b", "c", "d"}, []int64{42, 8, 5, 3}, []string{"holder-1", "holder-1", "holder-1", "holder-1"}},
		[]string{"done", "pending", "dead", "pending"}, []int64{0, ms(6000), 0, ms(5000)}, []bool{false, false, false, true},
		[]string{"", "it failed", "given up", ""}, "a", "b", "c", "d")),
	"settle/repeat":           script(finish(), grantsSeen([]string{"a", "b"}, row{"a", "done", 42, "holder-1", 0}, doneB)),
	"settle/gone":             script(finish(), grantsSeen([]string{"a", "b"})),
	"settle/older":            script(finish("a"), grantsSeen([]string{"b"}, newerB)),
	"settle/cancelled":        script(finish("a"), grantsSeen([]string{"b"}, cancelledB)),
	"settle/busy":             script(finish("a"), grantsSeen([]string{"b"}, runsB)),
	"transaction/settle":      inTx(waits(finish("a", "b"))),
	"transaction/settle-lost": inTx(waits(finish("a")), grantsSeen([]string{"b"}, newerB)),
}

// deleting are the scripts that differ with DeleteFinished.
func deleting() map[string][]conformance.SQLStep {
	return map[string][]conformance.SQLStep{
		"settle/done": script(erase("a", "b")),
		"settle/mixed": script(
			settle([]driver.Value{[]string{"b", "c", "d"}, []int64{8, 5, 3}, []string{"holder-1", "holder-1", "holder-1"}},
				[]string{"pending", "dead", "pending"}, []int64{ms(6000), 0, ms(5000)}, []bool{false, false, true},
				[]string{"it failed", "given up", ""}, "b", "c", "d"),
			asks(eraseText, grants(1), returned("a")...)),
		"settle/gone":             script(erase(), grantsSeen([]string{"a", "b"})),
		"settle/older":            script(erase("a"), grantsSeen([]string{"b"}, newerB)),
		"settle/cancelled":        script(erase("a"), grantsSeen([]string{"b"})),
		"settle/busy":             script(erase("a"), grantsSeen([]string{"b"}, runsB)),
		"transaction/settle":      inTx(waits(erase("a", "b"))),
		"transaction/settle-lost": inTx(waits(erase("a")), grantsSeen([]string{"b"}, newerB)),
		"cancel/fates": script(cancelErase([]string{"a", "b", "c", "d", "e"}, cancelledRows...),
			allSeen([]string{"d", "e"}, row{"d", "dead", 0, 0})),
		"cancel/busy": script(cancelErase([]string{"a", "b"}, row{"a", "cancelled", 0}),
			allSeen([]string{"b"}, row{"b", "pending", 0, ms(1000)})),
	}
}

// scripts are those of a Store that keeps finished rows, or deletes them.
func scripts(deletes bool) map[string][]conformance.SQLStep {
	all := map[string][]conformance.SQLStep{}
	for _, part := range []map[string][]conformance.SQLStep{inserts, claims, extends, settles, cancels, reschedules, sweeps, batches()} {
		maps.Copy(all, part)
	}
	if deletes {
		maps.Copy(all, deleting())
		maps.Copy(all, deletingBatches())
		delete(all, "settle/repeat")
		delete(all, "cancel/repeat")
	}
	return all
}

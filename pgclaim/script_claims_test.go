package pgclaim_test

import (
	"database/sql/driver"
	"slices"

	"github.com/dueclaim/dueclaim/conformance"
)

var insertText = insertStart + `
ON CONFLICT (queue, id) DO NOTHING
RETURNING ` + changed("$10")

const insertStart = `
INSERT INTO "dueclaim_tasks" AS t (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at)
SELECT $1::text, a.id, 'pending', a.due, a.due, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, a.max_attempts, a.kind, a.payload, a.meta, $3::text, $4::bigint
FROM unnest($2::text[], $5::bigint[], $6::integer[], $7::text[], $8::bytea[], $9::bytea[])
AS a(id, due, max_attempts, kind, payload, meta)`

var insertAgainText = insertStart + `
WHERE (SELECT t.status IN ('pending', 'running') OR t.call_id = $3::text FROM "dueclaim_tasks" AS t WHERE t.queue = $1::text AND t.id = a.id) IS NOT TRUE
ON CONFLICT (queue, id) DO UPDATE
SET status = 'pending', due = excluded.due, planned = excluded.planned,
token = greatest(t.token + 1, excluded.token), holder = '', lease_until = 0,
attempts = 0, crashes = 0, max_attempts = excluded.max_attempts, kind = excluded.kind,
payload = excluded.payload, meta = excluded.meta, last_error = '', call_id = excluded.call_id,
created_at = excluded.created_at, finished_at = NULL
WHERE t.status IN ('done', 'dead', 'cancelled') AND t.call_id <> excluded.call_id
RETURNING ` + changed("$10")

// insertBoth inserts a and b and returns the ids that had no row.
func insertBoth(ids ...string) conformance.SQLStep {
	return asks(insertText, insertArgs("a", "b"), returned(ids...)...)
}

// insertAgain is the second step, for ids that have a row, and returns those whose
// tasks were finished.
func insertAgain(asked []string, replaced ...string) conformance.SQLStep {
	return asks(insertAgainText, insertArgs(asked...), returned(replaced...)...)
}

func insertArgs(ids ...string) []driver.Value {
	dues, payloads := []int64{}, [][]byte{}
	for _, id := range ids {
		dues = append(dues, map[string]int64{"a": ms(1000), "b": ms(2000)}[id])
		payloads = append(payloads, []byte("payload of "+id))
	}
	n := len(ids)
	return []driver.Value{
		ids, "call-1", present, dues, slices.Repeat([]int32{7}, n), slices.Repeat([]string{"mail"}, n), payloads, slices.Repeat([][]byte{{1}}, n), never,
	}
}

// insertsSeen reads what the insert left alone: id, status and call id.
func insertsSeen(ids []string, rows ...row) conformance.SQLStep {
	return asks(`SELECT t.id, t.status, t.call_id FROM "dueclaim_tasks" AS t
		WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[]))) AND `+durable, []driver.Value{ids}, rows...)
}

var inserts = map[string][]conformance.SQLStep{
	"insert/new": script(insertBoth("a", "b")),
	"insert/repeat": script(insertBoth(), insertAgain([]string{"a", "b"}), insertsSeen([]string{"a", "b"},
		row{"a", "running", "call-1"}, row{"b", "dead", "call-1"})),
	"insert/exists":             script(insertBoth("b"), insertAgain([]string{"a"}), insertsSeen([]string{"a"}, row{"a", "pending", "call-0"})),
	"insert/reuse":              script(insertBoth(), insertAgain([]string{"a", "b"}, "b", "a")),
	"insert/busy":               script(insertBoth("b"), insertAgain([]string{"a"}), insertsSeen([]string{"a"}, row{"a", "dead", "call-0"})),
	"transaction/insert":        inTx(insertBoth("a", "b")),
	"transaction/insert-exists": inTx(insertBoth("b"), insertAgain([]string{"a"}), insertsSeen([]string{"a"}, row{"a", "pending", "call-0"})),
}

var claimText = `
WITH picked AS MATERIALIZED (
SELECT r.place FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
SELECT t.ctid AS place FROM "dueclaim_tasks" AS t
WHERE t.queue = $1::text AND t.id = a.id
AND coalesce(t.due, 9223372036854775807) <= $4::bigint
AND (t.status = 'pending' OR (t.status = 'running' AND t.lease_until < $5::bigint AND t.holder <> $3::text))
FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE "dueclaim_tasks" AS t
SET status = 'running', token = t.token + 1, holder = $3::text, lease_until = $6::bigint,
attempts = t.attempts + 1, crashes = t.crashes + CASE t.status WHEN 'running' THEN 1 ELSE 0 END
WHERE t.ctid = ANY (ARRAY(SELECT place FROM picked))` + here + `
AND coalesce(t.due, 9223372036854775807) <= $4::bigint
AND (t.status = 'pending' OR (t.status = 'running' AND t.lease_until < $5::bigint AND t.holder <> $3::text))` + hex + `
RETURNING ` + changed("$7") + `, t.due, t.planned, t.token, t.attempts, t.crashes, t.max_attempts, t.kind, t.payload, t.meta`

// claim claims ids and returns what was granted: id, due, planned, token, attempts,
// crashes, max attempts, kind, payload and meta.
func claim(ids []string, granted ...row) conformance.SQLStep {
	return asks(claimText, []driver.Value{ids, "holder-1", ms(50), ms(-2000), ms(30000), never}, granted...)
}

// claimsSeen reads what the claim left alone: id, status, due, planned, token,
// holder, lease end, attempts, crashes, max attempts, kind, payload and meta.
func claimsSeen(ids []string, rows ...row) conformance.SQLStep {
	return asks(`SELECT t.id, t.status, coalesce(t.due, 0), t.planned, t.token, t.holder, t.lease_until,
		t.attempts, t.crashes, t.max_attempts, t.kind,
		CASE WHEN t.status = 'running' AND t.holder = $3::text THEN t.payload END,
		CASE WHEN t.status = 'running' AND t.holder = $3::text THEN t.meta END
		FROM "dueclaim_tasks" AS t
		WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[])))`+hex+`
		AND (t.status <> 'running' OR t.holder <> $3::text OR `+durable+`)`, []driver.Value{ids, "holder-1"}, rows...)
}

var (
	grantedA = row{"a", ms(-1000), ms(-1000), 42, 1, 0, 7, "mail", []byte("payload of a"), []byte{1}}
	grantedB = row{"b", ms(-500), ms(-500), 8, 1, 0, 7, "mail", []byte("payload of b"), []byte{1}}
)

func theirs(id string) row {
	return row{id, "running", ms(-1000), ms(-1000), 9, "holder-0", ms(9000), 1, 0, 7, "mail", nil, nil}
}

var claims = map[string][]conformance.SQLStep{
	"claim/granted": script(claim([]string{"a", "b"}, grantedB, grantedA)), // in whatever order
	"claim/repeat": script(claim([]string{"a", "b"}), claimsSeen([]string{"a", "b"},
		row{"a", "running", ms(-1000), ms(-1000), 42, "holder-1", ms(30000), 1, 0, 7, "mail", []byte("payload of a"), []byte{1}},
		row{"b", "running", ms(-500), ms(-500), 8, "holder-1", ms(30000), 1, 0, 7, "mail", []byte("payload of b"), []byte{1}})),
	"claim/take-over": script(claim([]string{"a"}, row{"a", ms(-1000), ms(-1000), 42, 2, 1, 7, "mail", []byte("payload of a"), []byte{1}})),
	"claim/verdicts": script(claim([]string{"a", "b", "c", "d", "e", "f"}, grantedA), claimsSeen([]string{"b", "c", "d", "e", "f"},
		theirs("b"),
		row{"c", "pending", ms(5000), ms(5000), 3, "", 0, 0, 0, 7, "mail", nil, nil},
		row{"d", "dead", 0, ms(-1000), 3, "holder-0", 0, 7, 0, 7, "mail", nil, nil},
		row{"f", "pending", ms(-1000), ms(-1000), 3, "", 0, 0, 0, 7, "mail", nil, nil})),
	"claim/none": script(claim([]string{"a"}), claimsSeen([]string{"a"}, theirs("a"))),
}

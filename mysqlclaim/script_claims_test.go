package mysqlclaim_test

import (
	"github.com/go-sql-driver/mysql"

	"github.com/dueclaim/dueclaim/conformance"
)

const (
	insertHead = "INSERT INTO {t} (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at) " +
		"WITH v (id, due, max_attempts, kind, payload, meta) AS (VALUES "
	insertTail = ") SELECT _binary'default', v.id, 'pending', v.due, v.due, IF(" + serverClock + " < c.now + 50000, c.now, " + serverClock + "), v.max_attempts, v.kind, v.payload, v.meta, _binary'call-1', T " +
		"FROM (SELECT " + serverClock + " AS now) AS c STRAIGHT_JOIN v WHERE TRUE"
	insertBoth = insertHead +
		"ROW(_binary'a', T+1000, 7, _binary'mail', _binary'payload of a', x'01'), " +
		"ROW(_binary'b', T+2000, 7, _binary'mail', _binary'payload of b', x'01')" + insertTail
	serverClock = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)))"
	insertRest  = insertBoth + " ON DUPLICATE KEY UPDATE id = VALUES(id)"

	replaceA = "UPDATE (SELECT b.id, b.token, v.due, v.max_attempts, v.kind, v.payload, v.meta FROM " +
		"(SELECT _binary'a' AS id, T+1000 AS due, 7 AS max_attempts, _binary'mail' AS kind, _binary'payload of a' AS payload, x'01' AS meta) AS v " +
		"STRAIGHT_JOIN {t} AS b FORCE INDEX (PRIMARY) ON b.queue = _binary'default' AND b.id = v.id " +
		"WHERE b.status NOT IN ('pending', 'running') AND b.call_id <> _binary'call-1' LIMIT 1 FOR UPDATE SKIP LOCKED) AS was" + target +
		" SET t.status = 'pending', t.due = was.due, t.planned = was.due, t.token = GREATEST(was.token + 1, " + serverClock + "), t.holder = DEFAULT(t.holder), t.lease_until = 0, " +
		"t.attempts = 0, t.crashes = 0, t.max_attempts = was.max_attempts, t.kind = was.kind, t.payload = was.payload, t.meta = was.meta, " +
		"t.last_error = NULL, t.finished_at = NULL, t.call_id = _binary'call-1', t.created_at = T"
)

var duplicate = &mysql.MySQLError{Number: 1062, SQLState: [5]byte{'2', '3', '0', '0', '0'}, Message: "Duplicate entry 'default-a' for key 'PRIMARY'"}

// Rows as the read-back has them after an Insert: of b that call-1 made just now,
// and of a in three states.
var (
	newB  = row{"b", "pending", ms(2000), present, "", 0, "call-1"}
	liveA = row{"a", "pending", ms(900), 41, "", 0, "call-0"}
	deadA = row{"a", "dead", 0, 41, "holder-0", 0, "call-0"}
)

var inserts = map[string][]conformance.SQLStep{
	"insert/new": script(changes(2, insertBoth)),
	"insert/repeat": script(
		fails(duplicate, insertBoth),
		changes(0, insertRest),
		readBack("_binary'a', _binary'b'",
			row{"a", "running", ms(1000), present + 1, "holder-0", ms(9000), "call-1"},
			row{"b", "dead", 0, present + 1, "holder-0", 0, "call-1"})),
	"insert/exists": script(
		fails(duplicate, insertBoth),
		changes(1, insertRest),
		readBack("_binary'a', _binary'b'", liveA, newB)),
	"insert/reuse": script(
		fails(duplicate, insertBoth),
		changes(1, insertRest),
		readBack("_binary'a', _binary'b'", deadA, newB),
		changes(1, replaceA)),
	"insert/busy": script(
		fails(duplicate, insertBoth),
		changes(1, insertRest),
		readBack("_binary'a', _binary'b'", deadA, newB),
		changes(0, replaceA),
		readBack("_binary'a'", deadA)),
	"transaction/insert": inTx(readBack("_binary'a', _binary'b'"), changes(2, insertBoth)),
	// a became live after the transaction's snapshot.
	"transaction/insert-exists": inTx(
		readBack("_binary'a', _binary'b'"),
		fails(duplicate, insertBoth),
		changes(1, insertRest),
		locked(readBack("_binary'a', _binary'b'", liveA, newB))),
}

// claim is the claiming statement on n ids.
func claim(changed int64, ids, n string) conformance.SQLStep {
	return changes(changed, "UPDATE (SELECT id, status, token, attempts, crashes FROM {t} FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN ("+ids+") "+
		"AND due <= T+50 AND (status = 'pending' OR (status = 'running' AND lease_until < T-2000 AND holder <> _binary'holder-1')) "+
		"LIMIT "+n+" FOR UPDATE SKIP LOCKED) AS was"+target+
		" SET t.crashes = was.crashes + (was.status = 'running'), t.attempts = was.attempts + 1, t.token = was.token + 1, t.status = 'running', "+
		"t.holder = _binary'holder-1', t.lease_until = T+30000")
}

// claimed reads the verdicts; each row has id, status, due, planned, token,
// holder, lease end, attempts, crashes, max attempts, kind, payload and meta.
func claimed(ids string, rows ...row) conformance.SQLStep {
	return reads("SELECT id, status, COALESCE(due, 0), planned, token, holder, lease_until, attempts, crashes, max_attempts, kind, "+
		"IF(holder = _binary'holder-1', payload, NULL), IF(holder = _binary'holder-1', meta, NULL) FROM {t} FORCE INDEX (PRIMARY) "+
		"WHERE queue = _binary'default' AND id IN ("+ids+")", rows...)
}

// Rows after a claim: granted, and held by another.
var (
	oursA = row{"a", "running", ms(-1000), ms(-1000), 42, "holder-1", ms(30000), 1, 0, 7, "mail", []byte("payload of a"), []byte{1}}
	oursB = row{"b", "running", ms(-500), ms(-500), 8, "holder-1", ms(30000), 1, 0, 7, "mail", []byte("payload of b"), []byte{1}}
)

func theirs(id string) row {
	return row{id, "running", ms(-1000), ms(-1000), 9, "holder-0", ms(9000), 1, 0, 7, "mail", nil, nil}
}

var claims = map[string][]conformance.SQLStep{
	"claim/granted": script(
		claim(2, "_binary'a', _binary'b'", "2"),
		claimed("_binary'a', _binary'b'", oursA, oursB)),
	"claim/repeat": script(
		claim(0, "_binary'a', _binary'b'", "2"),
		claimed("_binary'a', _binary'b'", oursA, oursB)),
	"claim/take-over": script(
		claim(1, "_binary'a'", "1"),
		claimed("_binary'a'", row{"a", "running", ms(-1000), ms(-1000), 42, "holder-1", ms(30000), 2, 1, 7, "mail", []byte("payload of a"), []byte{1}})),
	"claim/verdicts": script(
		claim(1, "_binary'a', _binary'b', _binary'c', _binary'd', _binary'e', _binary'f'", "6"),
		claimed("_binary'a', _binary'b', _binary'c', _binary'd', _binary'e', _binary'f'",
			oursA, theirs("b"),
			row{"c", "pending", ms(5000), ms(5000), 3, "", 0, 0, 0, 7, "mail", nil, nil},
			row{"d", "dead", 0, ms(-1000), 3, "holder-0", 0, 7, 0, 7, "mail", nil, nil},
			row{"f", "pending", ms(-1000), ms(-1000), 3, "", 0, 0, 0, 7, "mail", nil, nil})),
	"claim/none": script(
		claim(0, "_binary'a'", "1"),
		claimed("_binary'a'", theirs("a"))),
}

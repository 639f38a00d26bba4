package mysqlclaim_test

import (
	"github.com/dueclaim/dueclaim/conformance"
)

const five = "_binary'a', _binary'b', _binary'c', _binary'd', _binary'e'"

func cancel(changed int64, ids, n string) conformance.SQLStep {
	return changes(changed, "UPDATE (SELECT id, status, lease_until FROM {t} FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN ("+ids+") "+
		"AND status IN ('pending', 'running') LIMIT "+n+" FOR UPDATE SKIP LOCKED) AS was"+target+
		" SET t.status = 'cancelled', t.due = NULL, t.finished_at = T+100, t.lease_until = IF(was.status = 'running' AND was.lease_until >= T+100, was.lease_until, 0)")
}

var fates = readBack(five,
	row{"a", "cancelled", 0, 3, "", 0, "call-0"},
	row{"b", "cancelled", 0, 3, "holder-0", ms(9000), "call-0"},
	row{"c", "cancelled", 0, 3, "holder-0", 0, "call-0"},
	row{"d", "dead", 0, 3, "holder-0", 0, "call-0"})

var cancels = map[string][]conformance.SQLStep{
	"cancel/fates":  script(cancel(3, five, "5"), fates),
	"cancel/repeat": script(cancel(0, five, "5"), fates),
	"cancel/busy": script(cancel(1, "_binary'a', _binary'b'", "2"), readBack("_binary'a', _binary'b'",
		row{"a", "cancelled", 0, 3, "", 0, "call-0"},
		row{"b", "pending", ms(1000), 3, "", 0, "call-0"})),
}

func eraseCancelledText(ids, n string) string {
	return "DELETE t FROM (SELECT id FROM {t} FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN (" + ids + ") " +
		"AND status = 'cancelled' LIMIT " + n + " FOR UPDATE SKIP LOCKED) AS was" + target
}

func reschedule(changed int64, moves, n string) conformance.SQLStep {
	return changes(changed, "UPDATE (SELECT b.id, v.target FROM ("+moves+") AS v "+
		"STRAIGHT_JOIN {t} AS b FORCE INDEX (PRIMARY) ON b.queue = _binary'default' AND b.id = v.id "+
		"WHERE b.status = 'pending' AND b.due BETWEEN v.low AND v.high AND b.due <> v.target LIMIT "+n+" FOR UPDATE SKIP LOCKED) AS was"+target+
		" SET t.due = was.target, t.planned = was.target")
}

const (
	moveBoth = "SELECT _binary'a' AS id, T+1000 AS low, T+1000 AS high, T+5000 AS target UNION ALL SELECT _binary'b', 0, 9223372036854775807, T+6000"
	moveFour = "SELECT _binary'a' AS id, T+1000 AS low, T+1000 AS high, T+5000 AS target UNION ALL SELECT _binary'b', T+1000, T+1000, T+5000 " +
		"UNION ALL SELECT _binary'c', T+1000, T+1000, T+5000 UNION ALL SELECT _binary'd', T+1000, T+1000, T+5000"
)

var (
	movedA = row{"a", "pending", ms(5000), 3, "", 0, "call-0"}
	dueB   = row{"b", "pending", ms(2000), 3, "", 0, "call-0"}
)

var reschedules = map[string][]conformance.SQLStep{
	"reschedule/all": script(reschedule(2, moveBoth, "2")),
	"reschedule/repeat": script(reschedule(0, moveBoth, "2"), readBack("_binary'a', _binary'b'",
		movedA, row{"b", "pending", ms(6000), 3, "", 0, "call-0"})),
	"reschedule/refused": script(reschedule(1, moveFour, "4"), readBack("_binary'a', _binary'b', _binary'c', _binary'd'",
		movedA, dueB, row{"c", "running", ms(1000), 3, "holder-0", ms(9000), "call-0"})),
	"reschedule/busy": script(reschedule(1, moveBoth, "2"), readBack("_binary'a', _binary'b'", movedA, dueB)),
}

const (
	waitingHead = "SELECT id, due FROM {t} FORCE INDEX (dueclaim_due) WHERE queue = _binary'default' AND "
	waitingTail = waiting + "ORDER BY due, finished_at, id LIMIT "
	waiting     = " AND (status = 'pending' OR (status = 'running' AND lease_until < T)) "
	purgeable   = "SELECT id, finished_at FROM {t} FORCE INDEX (dueclaim_due) WHERE queue = _binary'default' AND due IS NULL AND finished_at < T " +
		"AND status IN ('done', 'cancelled') ORDER BY finished_at, id LIMIT "
)

func purge(changed int64, ids, n string) conformance.SQLStep {
	return changes(changed, "DELETE t FROM (SELECT id FROM {t} FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN ("+ids+") "+
		"AND status IN ('done', 'cancelled') AND finished_at < T LIMIT "+n+" FOR UPDATE SKIP LOCKED) AS was"+target)
}

// Now doesn't look at the server before.
var sweeps = map[string][]conformance.SQLStep{
	"waiting/first-page": script(reads(waitingHead+"due < T+10000"+waitingTail+"3", row{"a", ms(-1000)}, row{"b", ms(-500)})),
	"waiting/next-page": script(
		reads(waitingHead+"due = T-500 AND finished_at IS NULL AND id > _binary'b'"+waiting+"ORDER BY id LIMIT 3", row{"c", ms(-500)}),
		reads(waitingHead+"due > T-500 AND due < T+10000"+waitingTail+"2"),
	),
	"waiting/none": script(reads(waitingHead + "due < T+10000" + waitingTail + "3")),
	"clock/now": {{
		Do: conformance.SQLQuery, OneRow: true, Rows: []row{{present * 1000}},
		Text: "SELECT " + serverClock,
	}},
	"purge/some": script(reads(purgeable+"10", row{"b", ms(-9)}, row{"a", ms(-8)}), purge(2, "_binary'a', _binary'b'", "2")),
	"purge/none": script(reads(purgeable + "10")),
}

package mysqlclaim_test

import (
	"fmt"
	"maps"
	"strings"

	"github.com/dueclaim/dueclaim/conformance"
)

// The grants of the scenarios, as conditions.
const (
	grantA    = "token = 42 AND holder = _binary'holder-1' AND id IN (_binary'a')"
	grantsAB  = grantA + " OR token = 8 AND holder = _binary'holder-1' AND id IN (_binary'b')"
	grantsABC = grantsAB + " OR token = 5 AND holder = _binary'holder-1' AND id IN (_binary'c')"
)

// Rows that run under these grants, and what else may have become of b.
var (
	runsA      = row{"a", "running", ms(-1000), 42, "holder-1", ms(30000), "call-0"}
	runsB      = row{"b", "running", ms(-500), 8, "holder-1", ms(30000), "call-0"}
	doneA      = row{"a", "done", 0, 42, "holder-1", 0, "call-0"}
	doneB      = row{"b", "done", 0, 8, "holder-1", 0, "call-0"}
	newerB     = row{"b", "running", ms(-500), 9, "holder-0", ms(9000), "call-0"}
	cancelledB = row{"b", "cancelled", 0, 8, "holder-1", ms(30000), "call-0"}
)

func extend(changed int64, grants string, n int) conformance.SQLStep {
	return changes(changed, "UPDATE "+granted(grants, n, " AND lease_until < T+60000")+target+" SET t.lease_until = T+60000")
}

var extends = map[string][]conformance.SQLStep{
	"extend/all": script(extend(2, grantsAB, 2)),
	"extend/repeat": script(
		extend(0, grantsAB, 2),
		readBack("_binary'a', _binary'b'",
			row{"a", "running", ms(-1000), 42, "holder-1", ms(60000), "call-0"},
			row{"b", "running", ms(-500), 8, "holder-1", ms(60000), "call-0"})),
	"extend/lost": script(
		extend(1, grantsABC, 3),
		readBack("_binary'a', _binary'b', _binary'c'", row{"a", "running", ms(-1000), 42, "holder-1", ms(60000), "call-0"}, newerB)),
	"extend/busy": script(
		extend(1, grantsAB, 2),
		readBack("_binary'a', _binary'b'", row{"a", "running", ms(-1000), 42, "holder-1", ms(60000), "call-0"}, runsB)),
}

func finish(changed int64, grants string, n int) conformance.SQLStep {
	return changes(changed, "UPDATE "+granted(grants, n, "")+target+" SET t.status = 'done', t.due = NULL, t.lease_until = 0, t.finished_at = T+100")
}

var (
	retryA = changes(1, "UPDATE "+held("b.id, v.due, v.err", "SELECT _binary'a' AS id, 42 AS token, _binary'holder-1' AS holder, T+5000 AS due, _binary'it failed' AS err", 1, "")+
		" SET t.status = 'pending', t.due = was.due, t.planned = was.due, t.lease_until = 0, t.last_error = was.err")
	retryB = changes(1, "UPDATE "+held("b.id, v.due, v.err", "SELECT _binary'b' AS id, 8 AS token, _binary'holder-1' AS holder, T+6000 AS due, _binary'it failed' AS err", 1, "")+
		" SET t.status = 'pending', t.due = was.due, t.planned = was.due, t.lease_until = 0, t.last_error = was.err")
	buryA = changes(1, "UPDATE "+held("b.id, v.err", "SELECT _binary'a' AS id, 42 AS token, _binary'holder-1' AS holder, _binary'given up' AS err", 1, "")+
		" SET t.status = 'dead', t.due = NULL, t.lease_until = 0, t.last_error = was.err, t.finished_at = T+100")
	buryC = changes(1, "UPDATE "+held("b.id, v.err", "SELECT _binary'c' AS id, 5 AS token, _binary'holder-1' AS holder, _binary'given up' AS err", 1, "")+
		" SET t.status = 'dead', t.due = NULL, t.lease_until = 0, t.last_error = was.err, t.finished_at = T+100")
	releaseA = changes(1, "UPDATE "+held("b.id, v.due, b.attempts", "SELECT _binary'a' AS id, 42 AS token, _binary'holder-1' AS holder, T+5000 AS due", 1, "")+
		" SET t.status = 'pending', t.due = was.due, t.lease_until = 0, t.attempts = was.attempts - 1")
	releaseD = changes(1, "UPDATE "+held("b.id, v.due, b.attempts", "SELECT _binary'd' AS id, 3 AS token, _binary'holder-1' AS holder, T+5000 AS due", 1, "")+
		" SET t.status = 'pending', t.due = was.due, t.lease_until = 0, t.attempts = was.attempts - 1")
)

var settles = map[string][]conformance.SQLStep{
	"settle/done":             script(finish(2, grantsAB, 2)),
	"settle/retry":            script(retryA),
	"settle/dead":             script(buryA),
	"settle/released":         script(releaseA),
	"settle/mixed":            script(retryB, buryC, releaseD, finish(1, grantA, 1)),
	"settle/repeat":           script(finish(0, grantsAB, 2), readBack("_binary'a', _binary'b'", doneA, doneB)),
	"settle/gone":             script(finish(0, grantsAB, 2), readBack("_binary'a', _binary'b'")),
	"settle/older":            script(finish(1, grantsAB, 2), readBack("_binary'a', _binary'b'", doneA, newerB)),
	"settle/cancelled":        script(finish(1, grantsAB, 2), readBack("_binary'a', _binary'b'", doneA, cancelledB)),
	"settle/busy":             script(finish(1, grantsAB, 2), readBack("_binary'a', _binary'b'", doneA, runsB)),
	"transaction/settle":      inTx(locked(readBack("_binary'a', _binary'b'", runsA, runsB)), waits(finish(2, grantsAB, 2))),
	"transaction/settle-lost": inTx(locked(readBack("_binary'a', _binary'b'", runsA, newerB)), waits(finish(1, grantA, 1))),
}

// With DeleteFinished what is done is deleted at once if all of it can be. Else it is
// read, and then deleted.

func eraseAll(changed int64, grants string, n int) conformance.SQLStep {
	inner := strings.TrimSuffix(granted(grants, n, ""), " AS was")
	return changes(changed, fmt.Sprintf("DELETE t FROM (SELECT id, COUNT(*) OVER () AS n FROM %s AS held) AS was%s WHERE was.n = %d", inner, target, n))
}

func erase(changed int64, grants string, n int) conformance.SQLStep {
	return changes(changed, "DELETE t FROM "+granted(grants, n, "")+target)
}

func deleting() map[string][]conformance.SQLStep {
	both := func(rows ...row) conformance.SQLStep { return readBack("_binary'a', _binary'b'", rows...) }
	m := map[string][]conformance.SQLStep{
		"settle/done":             script(eraseAll(2, grantsAB, 2)),
		"settle/mixed":            script(retryB, buryC, releaseD, erase(1, grantA, 1)),
		"settle/gone":             script(eraseAll(0, grantsAB, 2), both()),
		"settle/older":            script(eraseAll(0, grantsAB, 2), both(runsA, newerB), erase(1, grantA, 1)),
		"settle/cancelled":        script(eraseAll(0, grantsAB, 2), both(runsA, cancelledB), erase(1, grantA, 1)),
		"settle/busy":             script(eraseAll(0, grantsAB, 2), both(runsA, runsB), erase(1, grantsAB, 2), both(runsB)),
		"transaction/settle":      inTx(locked(both(runsA, runsB)), waits(erase(2, grantsAB, 2))),
		"transaction/settle-lost": inTx(locked(both(runsA, newerB)), waits(erase(1, grantA, 1))),
	}
	m["cancel/fates"] = append(cancels["cancel/fates"][:3:3], setting(alone, []conformance.SQLStep{changes(3, eraseCancelledText(five, "5"))})...)
	m["cancel/busy"] = append(cancels["cancel/busy"][:3:3], setting(alone, []conformance.SQLStep{changes(1, eraseCancelledText("_binary'a', _binary'b'", "2"))})...)
	return m
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

package mysqlclaim_test

import (
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/conformance"
)

// size is the suite's batch.
const size = 500

// each writes f for every id of the batch, with sep between.
func each(sep string, f func(i int, id string) string) string {
	parts := make([]string, size)
	for i := range parts {
		parts[i] = f(i, fmt.Sprintf("t%03d", i))
	}
	return strings.Join(parts, sep)
}

func eachRow(f func(id string) row) []row {
	rows := make([]row, size)
	for i := range rows {
		rows[i] = f(fmt.Sprintf("t%03d", i))
	}
	return rows
}

func list() string { return each(", ", func(_ int, id string) string { return "_binary'" + id + "'" }) }

// union is a table of literals; the first line names the columns.
func union(first, more string) string {
	return each(" UNION ALL ", func(i int, id string) string {
		if i == 0 {
			return fmt.Sprintf("SELECT _binary'%s' AS id, "+first, id)
		}
		return fmt.Sprintf("SELECT _binary'%s', "+more, id)
	})
}

func grants500() string {
	return "token = 42 AND holder = _binary'holder-1' AND id IN (" + list() + ")"
}

func batches() map[string][]conformance.SQLStep {
	n := fmt.Sprint(size)
	ids := list()
	firstPurge, restPurge := strings.Split(ids, ", "), 200
	return map[string][]conformance.SQLStep{
		"cost/insert": script(changes(size, insertHead+each(", ", func(_ int, id string) string {
			return "ROW(_binary'" + id + "', T+1000, 7, _binary'mail', _binary'payload of " + id + "', x'01')"
		})+insertTail)),
		"cost/claim": script(claim(size, ids, n), claimed(ids, eachRow(func(id string) row {
			return row{id, "running", ms(-1000), ms(-1000), 42, "holder-1", ms(30000), 1, 0, 7, "mail", []byte("payload of " + id), []byte{1}}
		})...)),
		"cost/extend": script(extend(size, grants500(), size)),
		"cost/settle": script(finish(size, grants500(), size)),
		"cost/cancel": script(cancel(size, ids, n), readBack(ids, eachRow(func(id string) row {
			return row{id, "cancelled", 0, 3, "", 0, "call-0"}
		})...)),
		"cost/reschedule": script(reschedule(size, union("T+1000 AS low, T+1000 AS high, T+5000 AS target", "T+1000, T+1000, T+5000"), n)),
		"cost/waiting":    script(reads(waitingHead+"due < T+10000"+waitingTail+n, eachRow(func(id string) row { return row{id, ms(-1000)} })...)),
		"cost/purge": script(reads(purgeable+n, eachRow(func(id string) row { return row{id, ms(-5000)} })...),
			purge(int64(restPurge), strings.Join(firstPurge[:restPurge], ", "), "200"),
			purge(int64(restPurge), strings.Join(firstPurge[restPurge:2*restPurge], ", "), "200"),
			purge(100, strings.Join(firstPurge[2*restPurge:], ", "), "100")),
	}
}

func deletingBatches() map[string][]conformance.SQLStep {
	return map[string][]conformance.SQLStep{
		"cost/settle": script(eraseAll(size, grants500(), size)),
		"cost/cancel": append(batches()["cost/cancel"], setting(alone, []conformance.SQLStep{changes(size, eraseCancelledText(list(), fmt.Sprint(size)))})...),
	}
}

package pgclaim_test

import (
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/conformance"
)

// size is the suite's batch.
const size = 500

func manyIDs() []string {
	ids := make([]string, size)
	for i := range ids {
		ids[i] = fmt.Sprintf("t%03d", i)
	}
	return ids
}

func eachRow(f func(id string) row) []row {
	var rows []row
	for _, id := range manyIDs() {
		rows = append(rows, f(id))
	}
	return rows
}

func many[T any](v T) []T { return slices.Repeat([]T{v}, size) }

func manyGrants() []driver.Value {
	return []driver.Value{manyIDs(), many(int64(42)), many("holder-1")}
}

func batches() map[string][]conformance.SQLStep {
	ids, only := manyIDs(), eachRow(func(id string) row { return row{id} })
	payloads := make([][]byte, size)
	for i, id := range ids {
		payloads[i] = []byte("payload of " + id)
	}
	return map[string][]conformance.SQLStep{
		"cost/insert": script(asks(insertText, []driver.Value{
			ids, "call-1", present, many(ms(1000)), many(int32(7)), many("mail"), payloads, many([]byte{1}), never,
		}, only...)),
		"cost/claim": script(claim(ids, eachRow(func(id string) row {
			return row{id, ms(-1000), ms(-1000), 42, 1, 0, 7, "mail", []byte("payload of " + id), []byte{1}}
		})...)),
		"cost/extend":     script(extend(manyGrants(), ids...)),
		"cost/settle":     script(settle(manyGrants(), many("done"), many(int64(0)), many(false), many(""), ids...)),
		"cost/cancel":     script(cancel(ids, eachRow(func(id string) row { return row{id, "cancelled", 0} })...)),
		"cost/reschedule": script(asks(rescheduleText, []driver.Value{ids, many(ms(1000)), many(ms(5000)), never}, only...)),
		"cost/waiting":    script(waiting(-1, "", size, eachRow(func(id string) row { return row{id, ms(-1000)} })...)),
		"cost/purge":      script(purge(size, only...)),
	}
}

func deletingBatches() map[string][]conformance.SQLStep {
	ids := manyIDs()
	return map[string][]conformance.SQLStep{
		"cost/settle": script(asks(eraseText, manyGrants(), returned(ids...)...)),
		"cost/cancel": script(cancelErase(ids, eachRow(func(id string) row { return row{id, "cancelled", 0} })...)),
	}
}

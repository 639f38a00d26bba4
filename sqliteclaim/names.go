package sqliteclaim

import (
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// checkTable accepts plain names only: a table of an attached database could not
// be changed together with one of the main database in one crash-safe commit.
func checkTable(table string) error {
	if err := claim.CheckTable(table, len("_finished")); err != nil {
		return err
	}
	if strings.Contains(table, ".") {
		return fmt.Errorf("%w: table name %q; want one without a schema", core.ErrInvalid, table)
	}
	return nil
}

// quoted returns the table's name, or that of one of its companions, quoted.
func quoted(table, suffix string) string { return claim.QuoteTable(table+suffix, '"') }

// statements are the texts of all statements on one table. A list of ids comes as
// one JSON parameter: the text doesn't depend on how many there are.
type statements struct {
	lock, insert, inserted  string
	claim, claimed          string
	extend, extended        string
	done, deleteDone, dead  string
	retry, release, settled string
	cancel, cancelled       string
	deleteCancelled         string
	reschedule, rescheduled string
	waiting, purge          string
}

func newStatements(table string) statements {
	text := func(s string) string { return strings.ReplaceAll(s, "$table", quoted(table, "")) }
	return statements{
		lock: text(lockSQL), insert: text(insertSQL), inserted: text(insertedSQL),
		claim: text(claimSQL), claimed: text(claimedSQL),
		extend: text(extendSQL), extended: text(extendedSQL),
		done: text(doneSQL), deleteDone: text(deleteDoneSQL), dead: text(deadSQL),
		retry: text(retrySQL), release: text(releaseSQL), settled: text(settledSQL),
		cancel: text(cancelSQL), cancelled: text(cancelledSQL), deleteCancelled: text(deleteCancelledSQL),
		reschedule: text(rescheduleSQL), rescheduled: text(rescheduledSQL),
		waiting: text(waitingSQL), purge: text(purgeSQL),
	}
}

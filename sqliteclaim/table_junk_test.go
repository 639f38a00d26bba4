package sqliteclaim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// A row whose due time can't be read is not there: it isn't granted, and it isn't
// left in processing either, by a claim that doesn't say so.
func TestAClaimLeavesARowAloneWhoseDueTimeIsNone(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	db := usersDB(t, path)
	execute(t, db, "CREATE TABLE orders (id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, at, updated DATETIME, token INTEGER, holder TEXT, lease DATETIME)")
	updated := claim.Table{
		Name: "orders", ID: claim.IDColumn{Name: "id"},
		State:   claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("in hand"), Done: claim.Text("done")},
		Due:     claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.DateTime}},
		Updated: claim.TimeColumn{Name: "updated", Kind: claim.DateTime}, LeaseFor: 30 * time.Second,
	}
	full := updated
	full.Updated, full.LeaseFor = claim.TimeColumn{}, 0
	full.Token, full.Holder, full.Lease = "token", "holder", claim.TimeColumn{Name: "lease", Kind: claim.DateTime}
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, def := range []claim.Table{updated, full} {
		table, err := sqliteclaim.NewTable(db, def)
		require.NoError(t, err)
		for value, want := range map[string]core.Verdict{
			"'2029-02-03'": core.Granted, "'2029-02-03 04:05'": core.Granted, "'2029-02-03 04:05:06'": core.Granted,
			"'2029-02-03T04:05:06'": core.Granted, "'2029-02-03 04:05:06.789'": core.Granted, "'2029-02-03T04:05'": core.Granted,
			"'2029-02-03 04:05:06Z'": core.Granted,
			"'1/2/2030'":             core.Gone, "12345": core.Gone, "1.5": core.Gone, "'12345'": core.Gone, "''": core.Gone, "x'32'": core.Gone,
			"'2029-02-31 00:00:00'": core.Gone, "'2029-02-03 04:05Z'": core.Gone, "'2029-02-03 04'": core.Gone, "'2029-02-03 04:05+02:00'": core.Gone,
			"'2029-02-03 24:00:00'": core.Gone, "NULL": core.Gone,
		} {
			execute(t, db, "DELETE FROM orders")
			execute(t, db, "INSERT INTO orders (id, state, at) VALUES ('a', 'new', "+value+")")
			got, err := table.Claim(t.Context(), []core.ID{"a"}, core.Lease{Holder: "h", Now: now, DueBy: now, Until: now.Add(30 * time.Second)})
			require.NoError(t, err)
			assert.Equal(t, want.String(), got[0].Verdict.String(), "%s: %s", def.Mode(), value)
			state := map[core.Verdict]string{core.Granted: "in hand", core.Gone: "new"}[want]
			assert.Equal(t, []string{state}, column(t, db, "SELECT state FROM orders"), "%s: %s", def.Mode(), value)
		}
	}
}

// A page of a sweep holds as many rows as it may, or is the last one.
func TestASweepPassesOverRowsWhoseDueTimesAreNone(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	db := usersDB(t, file(t))
	execute(t, db, "CREATE TABLE orders (id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, at)")
	for i := range 20 {
		execute(t, db, fmt.Sprintf("INSERT INTO orders VALUES ('%d', 'new', %d)", i, i))
	}
	execute(t, db, "INSERT INTO orders VALUES ('good', 'new', '2029-01-01 00:00:00')")
	table, err := sqliteclaim.NewTable(db, claim.Table{
		Name: "orders", ID: claim.IDColumn{Name: "id"},
		State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Done: claim.Text("done")},
		Due:   claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.DateTime}},
	})
	require.NoError(t, err)
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	got, err := table.Waiting(t.Context(), now, core.Entry{}, now, 10)
	require.NoError(t, err)
	assert.Equal(t, []core.Entry{{ID: "good", Due: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)}}, got)
}

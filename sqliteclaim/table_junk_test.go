package sqliteclaim_test

import (
	"database/sql"
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
		Due:     claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.DateTime, Zone: time.UTC}},
		Updated: claim.TimeColumn{Name: "updated", Kind: claim.DateTime, Zone: time.UTC}, LeaseFor: 30 * time.Second,
	}
	full := updated
	full.Updated, full.LeaseFor = claim.TimeColumn{}, 0
	full.Token, full.Holder, full.Lease = "token", "holder", claim.TimeColumn{Name: "lease", Kind: claim.DateTime, Zone: time.UTC}
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, def := range []claim.Table{updated, full} {
		table, err := sqliteclaim.NewTable(db, def)
		require.NoError(t, err)
		for value, want := range map[string]core.Verdict{
			"'2029-02-03'": core.Granted, "'2029-02-03 04:05'": core.Granted, "'2029-02-03 04:05:06'": core.Granted,
			"'2029-02-03T04:05:06'": core.Granted, "'2029-02-03 04:05:06.789'": core.Granted, "'2029-02-03T04:05'": core.Granted,
			"'2029-02-03 04:05:06Z'": core.Granted, "'2029-02-03 04:05:06.789+00:00'": core.Granted,
			"'2029-02-03 04:05:06.5 +0000 UTC'": core.Granted, "'2029-02-03 04:05:06.5 +0000 UTC m=+0.001'": core.Granted,
			"'2029-02-03 04:05:06-05:00'": core.Gone, "'2029-02-03 04:05:06.5 -0500 EST m=+0.001'": core.Gone, "'2029-02-03 04:05:06 x'": core.Gone,
			"'1/2/2030'": core.Gone, "12345": core.Gone, "1.5": core.Gone, "'12345'": core.Gone, "''": core.Gone, "x'32'": core.Gone,
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

// A driver of Go's writes a time.Time by the clock of its own zone, with the offset
// behind it. As the column's clock that is another instant, hours too early or late.
func TestATimeOfAnotherClockIsNeverDue(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	york, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	for _, dsn := range []string{"", "?_time_format=sqlite"} {
		path := file(t)
		db, err := sql.Open("sqlite", "file:"+path+dsn)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		execute(t, db, "CREATE TABLE orders (id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, at)")
		now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
		for id, at := range map[string]time.Time{"york": now.In(york), "utc": now} {
			_, err := db.ExecContext(t.Context(), "INSERT INTO orders VALUES (?, 'new', ?)", id, at)
			require.NoError(t, err)
		}
		ask := func(zone *time.Location, at time.Time) string {
			table, err := sqliteclaim.NewTable(db, claim.Table{
				Name: "orders", ID: claim.IDColumn{Name: "id"},
				State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Done: claim.Text("done")},
				Due:   claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.DateTime, Zone: zone}, After: 30 * time.Minute},
			})
			require.NoError(t, err)
			got, err := table.Claim(t.Context(), []core.ID{"utc", "york"}, core.Lease{Holder: "h", Now: at, DueBy: at, Until: at.Add(30 * time.Second)})
			require.NoError(t, err)
			waiting, err := table.Waiting(t.Context(), at, core.Entry{}, at.Add(time.Hour), 10)
			require.NoError(t, err)
			return fmt.Sprint(got[0].Verdict, got[1].Verdict, len(waiting))
		}
		assert.Equal(t, "NotDue Gone 1", ask(time.UTC, now.Add(time.Second)), dsn)
		assert.Equal(t, "Granted Gone 1", ask(time.UTC, now.Add(31*time.Minute)), dsn)
		assert.Equal(t, "Gone Gone 0", ask(york, now.Add(31*time.Minute)), dsn)
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
		Due:   claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.DateTime, Zone: time.UTC}},
	})
	require.NoError(t, err)
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	got, err := table.Waiting(t.Context(), now, core.Entry{}, now, 10)
	require.NoError(t, err)
	assert.Equal(t, []core.Entry{{ID: "good", Due: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)}}, got)
}

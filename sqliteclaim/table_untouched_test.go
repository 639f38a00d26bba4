package sqliteclaim_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// A table with a status and updated_at alone, as frameworks make them.
func TestATableOfStatusAndLastChangeAlone(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for i, c := range []struct {
		column string
		kind   claim.TimeColumn
		touch  string
	}{
		{"DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", claim.TimeColumn{Kind: claim.DateTime, Zone: time.UTC}, ""}, // a trigger keeps it
		{"TEXT NOT NULL", claim.TimeColumn{Kind: claim.DateTime, Zone: time.UTC}, ", updated_at = datetime('now')"},
		{"INTEGER NOT NULL", claim.TimeColumn{Kind: claim.UnixSecond}, ", updated_at = unixepoch()"},
	} {
		t.Run(c.column, func(t *testing.T) {
			path := file(t)
			db := usersDB(t, path)
			name := fmt.Sprint("common", i)
			execute(t, db, "CREATE TABLE "+name+" (order_id TEXT NOT NULL PRIMARY KEY, status TEXT NOT NULL, updated_at "+c.column+")",
				"CREATE INDEX "+name+"_due ON "+name+" (status, updated_at, order_id)")
			if c.touch == "" {
				execute(t, db, "CREATE TRIGGER touch AFTER UPDATE ON "+name+" BEGIN UPDATE "+name+" SET updated_at = CURRENT_TIMESTAMP WHERE order_id = new.order_id; END")
			}
			table, err := sqliteclaim.OpenTable(t.Context(), path, tabletest.Untouched(name, c.kind))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, table.Close()) })
			found, err := table.Verify(t.Context())
			require.NoError(t, err)
			tabletest.TestUntouched(t, tabletest.Handle{
				Claimer: table, Name: name,
				Exec: func(t *testing.T, query string) int64 {
					result, err := db.ExecContext(t.Context(), query)
					require.NoError(t, err)
					n, err := result.RowsAffected()
					require.NoError(t, err)
					return n
				},
				Text: func(t *testing.T, query string) string { return column(t, db, query)[0] },
				Literal: func(c claim.TimeColumn, value int64) string {
					if c.Integer() {
						return fmt.Sprint(value)
					}
					return "'" + c.Text(value) + "'"
				},
				Transition: func(ctx context.Context, job *core.Job, f func(exec func(query string) error) error) error {
					return table.Transition(ctx, job, func(tx *sql.Tx) error {
						return f(func(query string) error { _, err := tx.ExecContext(ctx, query); return err })
					})
				},
			}, c.kind, found, c.touch)
		})
	}
}

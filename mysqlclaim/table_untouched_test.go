package mysqlclaim

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
)

// A table with a status and updated_at alone, as frameworks make them.
func TestATableOfStatusAndLastChangeAlone(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		for i, c := range []struct {
			column string
			kind   claim.TimeColumn
			touch  string
		}{
			{"TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", claim.TimeColumn{Kind: claim.Timestamp}, ""},
			{"DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", claim.TimeColumn{Kind: claim.DateTime, Digits: 6, Zone: time.UTC}, ""},
			{"DATETIME NOT NULL", claim.TimeColumn{Kind: claim.DateTime, Zone: time.UTC}, ", updated_at = UTC_TIMESTAMP()"},
			{"BIGINT NOT NULL", claim.TimeColumn{}, ", updated_at = 1000 * UNIX_TIMESTAMP()"},
		} {
			t.Run(c.column, func(t *testing.T) {
				t.Attr("dueclaim.backend", b.name)
				name := fmt.Sprint("common", i)
				f.make(t, "CREATE TABLE %s (order_id VARCHAR(50) COLLATE EXACT PRIMARY KEY, status VARCHAR(20) NOT NULL, updated_at "+c.column+", KEY (status, updated_at))", name)
				table := newTable(t, f.db, tabletest.Untouched(name, c.kind))
				found, err := table.Verify(t.Context())
				require.NoError(t, err)
				tabletest.TestUntouched(t, tabletest.Handle{
					Claimer: table, Name: name,
					Exec: func(t *testing.T, query string) int64 {
						result, err := f.db.ExecContext(t.Context(), query)
						require.NoError(t, err)
						n, err := result.RowsAffected()
						require.NoError(t, err)
						return n
					},
					Text: func(t *testing.T, query string) (text string) {
						require.NoError(t, f.db.QueryRowContext(t.Context(), query).Scan(&text))
						return text
					},
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
	})
}

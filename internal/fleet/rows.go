package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Row is what the store's table says about a task, read beside the store.
type Row struct {
	Status            claim.Status
	Due               int64 // ms since 1970, as the others; 0: NULL
	Token             int64
	Holder            string
	LeaseUntil        int64
	Attempts, Crashes int
	LastError         string
	FinishedAt        int64 // 0: NULL
}

// Rows reads the whole table.
func (b *Bench) Rows(t *testing.T) map[core.ID]Row {
	t.Helper()
	rows, err := b.DB.QueryContext(t.Context(), "SELECT id, status, COALESCE(due, 0), token, holder, lease_until, attempts, crashes, "+
		"COALESCE(last_error, ''), COALESCE(finished_at, 0) FROM "+claim.DefaultTable)
	require.NoError(t, err)
	defer rows.Close()
	all := map[core.ID]Row{}
	for rows.Next() {
		var id core.ID
		var r Row
		require.NoError(t, rows.Scan(&id, &r.Status, &r.Due, &r.Token, &r.Holder, &r.LeaseUntil, &r.Attempts, &r.Crashes, &r.LastError, &r.FinishedAt))
		all[id] = r
	}
	require.NoError(t, rows.Err())
	return all
}

// Count is how many rows are in a state.
func (b *Bench) Count(t *testing.T, status claim.Status) int {
	t.Helper()
	var n int
	require.NoError(t, b.DB.QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM "+claim.DefaultTable+" WHERE status = '"+string(status)+"'").Scan(&n))
	return n
}

// Exec is a statement of the test's own, as an operator's.
func (b *Bench) Exec(t *testing.T, statement string) {
	t.Helper()
	_, err := b.DB.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

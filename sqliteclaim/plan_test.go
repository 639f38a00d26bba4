package sqliteclaim

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plan returns SQLite's plan for a statement, a line a step.
func plan(t *testing.T, s *Store, statement string) string {
	t.Helper()
	var lines []string
	args := make([]any, strings.Count(statement, "?")) // at least as many as there are
	for i := range args {
		args[i] = "[]"
	}
	err := each(t.Context(), s.db, "EXPLAIN QUERY PLAN "+statement, func(scan scanner) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		lines = append(lines, detail)
		return err
	}, args...)
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

func TestStatementsFindRowsByIndexWhateverTheTablesSizeIs(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "tasks.db"), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(t.Context()))
	const byKey = "INDEX sqlite_autoindex_dueclaim_tasks_1 (queue=? AND id=?)"
	for _, size := range []string{"empty", "analyzed when empty", "large", "analyzed"} {
		switch size {
		case "large":
			_, err := s.db.ExecContext(t.Context(), `
				WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
				INSERT INTO dueclaim_tasks (queue, id, status, due, planned, token, max_attempts, kind, call_id, created_at)
				SELECT 'default', 'id-' || i, 'pending', i, i, i, 0, '', '', 0 FROM n`)
			require.NoError(t, err)
		case "analyzed", "analyzed when empty":
			_, err := s.db.ExecContext(t.Context(), "ANALYZE")
			require.NoError(t, err)
		}
		for name, statement := range map[string]struct{ sql, want string }{
			"inserted": {s.sql.inserted, byKey}, "claim": {s.sql.claim, byKey}, "claimed": {s.sql.claimed, byKey},
			"extend": {s.sql.extend, byKey}, "extended": {s.sql.extended, byKey},
			"done": {s.sql.done, byKey}, "delete done": {s.sql.deleteDone, byKey}, "dead": {s.sql.dead, byKey},
			"retry": {s.sql.retry, byKey}, "release": {s.sql.release, byKey}, "settled": {s.sql.settled, byKey},
			"cancel": {s.sql.cancel, byKey}, "cancelled": {s.sql.cancelled, byKey}, "delete cancelled": {s.sql.deleteCancelled, byKey},
			"reschedule": {s.sql.reschedule, byKey}, "rescheduled": {s.sql.rescheduled, byKey},
			"waiting": {s.sql.waiting, "INDEX dueclaim_tasks_due (queue=? AND (due,id)>(?,?) AND due<?)"},
			"purge":   {s.sql.purge, "INDEX dueclaim_tasks_finished (queue=? AND finished_at<?)"},
		} {
			t.Run(fmt.Sprint(size, "/", name), func(t *testing.T) {
				p := plan(t, s, statement.sql)
				require.Contains(t, p, statement.want)
				require.NotContains(t, p, "SCAN dueclaim_tasks")
				require.NotContains(t, p, "SCAN t")
				require.NotContains(t, p, "AUTOMATIC")
				require.NotContains(t, p, "TEMP B-TREE FOR ORDER BY")
			})
		}
	}
}

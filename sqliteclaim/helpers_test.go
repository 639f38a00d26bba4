package sqliteclaim_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func call(id string) core.Call { return core.Call{ID: id, Now: noon} }

func lease(holder string, now, until int) core.Lease {
	return core.Lease{Holder: holder, Now: at(now), DueBy: at(now), Until: at(until)}
}

// file returns the path of a database that isn't there yet.
func file(t testing.TB) string { return filepath.Join(t.TempDir(), "tasks.db") }

// open returns a migrated store, closed with the test.
func open(t testing.TB, path string, options sqliteclaim.Options) *sqliteclaim.Store {
	t.Helper()
	s, err := sqliteclaim.Open(t.Context(), path, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

func ids(n int) []core.ID {
	ids := make([]core.ID, n)
	for i := range ids {
		ids[i] = core.ID(fmt.Sprintf("id-%06d", i))
	}
	return ids
}

// insert stores tasks that are due at noon.
func insert(t testing.TB, s core.Store, name string, ids ...core.ID) {
	t.Helper()
	insertAt(t, s, name, 0, ids...)
}

// insertAt stores tasks that are due some seconds after noon.
func insertAt(t testing.TB, s core.Store, name string, seconds int, ids ...core.ID) {
	t.Helper()
	tasks := make([]core.Task, len(ids))
	for i, id := range ids {
		tasks[i] = core.Task{ID: id, Kind: "k", Payload: []byte("payload"), Due: at(seconds)}
	}
	require.NoError(t, s.Insert(t.Context(), call(name), tasks))
}

// grant claims tasks, each of which must be granted.
func grant(t testing.TB, s core.Store, l core.Lease, ids ...core.ID) []core.Grant {
	t.Helper()
	claimed, err := s.Claim(t.Context(), ids, l)
	require.NoError(t, err)
	grants := make([]core.Grant, len(ids))
	for i, c := range claimed {
		require.Equal(t, core.Granted, c.Verdict, "id %s", c.ID)
		grants[i] = c.Grant
	}
	return grants
}

// column returns the first column of a query.
func column(t testing.TB, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var all []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		all = append(all, s)
	}
	require.NoError(t, rows.Err())
	return all
}

// insist calls f until the file isn't locked any more, as core does.
func insist(f func() error) error {
	for range 20 {
		err := f()
		var busy *sqlite.Error
		if !errors.As(err, &busy) || busy.Code()&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
	}
	return f()
}

// claimInsisting is s.Claim, repeated while the file is locked.
func claimInsisting(ctx context.Context, s core.Store, ids []core.ID, l core.Lease) (claimed []core.Claimed, err error) {
	err = insist(func() error {
		claimed, err = s.Claim(ctx, ids, l)
		return err
	})
	return claimed, err
}

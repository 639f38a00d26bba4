package sqliteclaim_test

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// SQLite locks files, not rows: conformance.Store.Lock doesn't apply, see
// TestCallEndsSoonAfterItsContext instead.
func TestStoreKeepsTheContract(t *testing.T) {
	for name, config := range map[string]struct {
		open    func(t *testing.T, path string, o sqliteclaim.Options) *sqliteclaim.Store
		options sqliteclaim.Options
	}{
		"opened":                  {open: opened},
		"opened,deletes-finished": {open: opened, options: sqliteclaim.Options{DeleteFinished: true}},
		"database-of-the-users":   {open: usersOwn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Attr("dueclaim.backend", "store:sqlite")
			path := file(t)
			var queues atomic.Int64
			queueOf := map[core.Store]string{}
			conformance.TestStore(t, conformance.Store{
				New: func(t *testing.T) core.Store {
					o := config.options
					o.Queue = fmt.Sprint("queue ", queues.Add(1))
					s := config.open(t, path, o)
					queueOf[s] = o.Queue
					return s
				},
				Peer: func(t *testing.T, first core.Store) core.Store {
					o := config.options
					o.Queue = queueOf[first]
					return config.open(t, path, o)
				},
				Provides: conformance.StoreProvides{Purger: true, KeepsFinished: !config.options.DeleteFinished},
			})
		})
	}
}

func opened(t *testing.T, path string, o sqliteclaim.Options) *sqliteclaim.Store {
	return open(t, path, o)
}

func usersOwn(t *testing.T, path string, o sqliteclaim.Options) *sqliteclaim.Store {
	s, err := sqliteclaim.New(usersDB(t, path), o)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

// usersDB is a database with a pool of connections, and no immediate transactions.
func usersDB(t *testing.T, path string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

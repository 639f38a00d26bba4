package sqliteclaim_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// SQLite locks files, not rows: conformance.Store.Lock doesn't apply, see
// TestCallEndsSoonAfterItsContext instead.
func TestStoreKeepsTheContract(t *testing.T) {
	type configuration struct {
		open    func(t *testing.T, path string, o sqliteclaim.Options) *sqliteclaim.Store
		options sqliteclaim.Options
		variant bool
	}
	deletes := sqliteclaim.Options{DeleteFinished: true}
	configs := map[string]configuration{
		"opened":                                 {open: opened},
		"database-of-the-users,deletes-finished": {open: usersOwn, options: deletes, variant: true},
	}
	if os.Getenv("DUECLAIM_STRESS") != "" {
		configs["opened,deletes-finished"] = configuration{open: opened, options: deletes}
		configs["database-of-the-users"] = configuration{open: usersOwn}
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Attr("dueclaim.backend", "store:sqlite")
			path := file(t)
			other := usersDB(t, path)
			run := func(statement string) {
				_, err := other.ExecContext(context.WithoutCancel(t.Context()), statement)
				require.NoError(t, err, statement)
			}
			run("CREATE TABLE effects (queue TEXT, name TEXT, PRIMARY KEY (queue, name)) STRICT")
			var queues atomic.Int64
			queueOf := map[core.Store]string{}
			fresh := func(t *testing.T) core.Store {
				o := config.options
				o.Queue = fmt.Sprint("queue ", queues.Add(1))
				s := config.open(t, path, o)
				queueOf[s] = o.Queue
				// A long table, of long rows above all, would slow down the cases to come.
				t.Cleanup(func() { run("DELETE FROM dueclaim_tasks WHERE queue = '" + o.Queue + "'") })
				return s
			}
			conformance.TestStore(t, conformance.Store{
				New:       fresh,
				Neighbour: func(t *testing.T, _ core.Store) core.Store { return fresh(t) },
				Peer: func(t *testing.T, first core.Store) core.Store {
					o := config.options
					o.Queue = queueOf[first]
					return config.open(t, path, o)
				},
				// A file can't be away; its table can.
				Break: func(*testing.T, core.Store) func() {
					run("ALTER TABLE dueclaim_tasks RENAME TO away")
					return func() { run("ALTER TABLE away RENAME TO dueclaim_tasks") }
				},
				Hold: func(t *testing.T, _ core.Store) func() { return holdFile(t, other) },
				Idle: func(_ *testing.T, s core.Store) error { return idle(s.(*sqliteclaim.Store).DB()) },
				Begin: func(t *testing.T, s core.Store) conformance.Tx {
					tx, err := s.(*sqliteclaim.Store).DB().BeginTx(context.WithoutCancel(t.Context()), nil)
					require.NoError(t, err)
					return usersTx{s.(*sqliteclaim.Store), tx, queueOf[s]}
				},
				Wrote: func(t *testing.T, s core.Store, key string) bool {
					return len(column(t, other, "SELECT name FROM effects WHERE queue = ? AND name = ?", queueOf[s], key)) == 1
				},
				Variant:  config.variant,
				Provides: conformance.StoreProvides{Purger: true, KeepsFinished: !config.options.DeleteFinished},
			})
		})
	}
}

// holdFile takes the file's write lock, as another process would.
func holdFile(t *testing.T, db *sql.DB) (release func()) {
	ctx := context.WithoutCancel(t.Context())
	conn, err := db.Conn(ctx)
	require.NoError(t, err)
	_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// idle says how many connections are not back in their pool.
func idle(db *sql.DB) error {
	if n := db.Stats().InUse; n > 0 {
		return fmt.Errorf("%d connections are in use", n)
	}
	return nil
}

// usersTx is a user's transaction with the store's methods for it.
type usersTx struct {
	s     *sqliteclaim.Store
	tx    *sql.Tx
	queue string
}

func (u usersTx) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return u.s.InsertTx(ctx, u.tx, call, tasks)
}

func (u usersTx) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return u.s.SettleTx(ctx, u.tx, now, settlements)
}

func (u usersTx) Write(ctx context.Context, key string) error {
	var n int
	if err := u.tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM effects WHERE queue = ?", u.queue).Scan(&n); err != nil {
		return err
	}
	_, err := u.tx.ExecContext(ctx, "INSERT INTO effects VALUES (?, ?)", u.queue, key)
	return err
}

func (u usersTx) Commit(context.Context) error { return u.tx.Commit() }

func (u usersTx) Rollback() { _ = u.tx.Rollback() }

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

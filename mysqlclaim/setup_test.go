package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
)

// backend is a server that every test runs on.
type backend struct {
	name     string
	database func(t testing.TB) string // the DSN of a fresh database, without options
}

var backends = []backend{
	{"store:mariadb", testserver.MariaDB},
	{"store:mysql", testserver.MySQL},
}

// onEach runs a test on every server.
func onEach(t *testing.T, test func(t *testing.T, b backend)) {
	t.Helper()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Attr("dueclaim.backend", b.name)
			test(t, b)
		})
	}
}

// open returns a pool, closed with the test, on a DSN plus driver options.
func open(t testing.TB, dsn, options string) *sql.DB {
	t.Helper()
	return openBy(t, dsn, options, new(line.Line))
}

// openBy is open by a line that may be cut.
func openBy(t testing.TB, dsn, options string, l *line.Line) *sql.DB {
	t.Helper()
	if options != "" {
		dsn += "?" + options
	}
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	config.DialFunc = l.Dial
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// newStore returns a Store on db whose table is made.
func newStore(t testing.TB, db *sql.DB, o Options) *Store {
	t.Helper()
	s, err := New(db, o)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

// fresh returns a Store on a database of its own.
func fresh(t testing.TB, b backend, o Options) *Store {
	t.Helper()
	return newStore(t, open(t, b.database(t), "interpolateParams=true"), o)
}

// lockRow locks a row in a transaction of its own until unlock is called.
func lockRow(t testing.TB, s *Store, id core.ID) (unlock func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	tx, err := s.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	var one int
	lock := new(text).sql("SELECT 1 FROM ", s.quoted, " WHERE queue = ").val(s.queue).sql(" AND id = ").val(string(id)).sql(" FOR UPDATE")
	require.NoError(t, tx.QueryRowContext(ctx, lock.String()).Scan(&one))
	return func() { require.NoError(t, tx.Rollback()) }
}

// base is the made-up present of the tests.
var base = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// endOfTime is the last due time there is.
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)

func at(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }

func task(id core.ID) core.Task {
	return core.Task{ID: id, Kind: "mail", Payload: []byte("to " + id), Due: base}
}

func someTasks(prefix string, n int) []core.Task {
	list := make([]core.Task, n)
	for i := range list {
		list[i] = task(core.ID(fmt.Sprintf("%s-%05d", prefix, i)))
	}
	return list
}

func idsOf(tasks []core.Task) []core.ID {
	ids := make([]core.ID, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}

func callNamed(id string) core.Call { return core.Call{ID: id, Now: base} }

func leaseOf(holder string, now time.Time) core.Lease {
	return core.Lease{Holder: holder, Now: now, DueBy: now, Until: now.Add(30 * time.Second)}
}

// insert inserts under a call of its own.
func insert(t testing.TB, s *Store, tasks ...core.Task) {
	t.Helper()
	require.NoError(t, s.Insert(t.Context(), callNamed("call of "+string(tasks[0].ID)), tasks))
}

// grant claims ids, all of which must be granted.
func grant(t testing.TB, s *Store, lease core.Lease, ids ...core.ID) []core.Claimed {
	t.Helper()
	got, err := s.Claim(t.Context(), ids, lease)
	require.NoError(t, err)
	for _, c := range got {
		require.Equal(t, core.Granted, c.Verdict, "%s is %s", c.ID, c.Verdict)
	}
	return got
}

func contextFor(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

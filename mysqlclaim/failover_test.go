package mysqlclaim

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// After a failover connections that stand lead to a server that takes no writes, new ones
// to the new primary. Here a private server becomes read-only for those that stand: what
// is new comes by an account that may write all the same.
func TestConnectionsToAServerThatHasBecomeReadOnlyAreDropped(t *testing.T) {
	for name, kind := range map[string]server.Kind{"store:mariadb": server.MariaDB, "store:mysql": server.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Attr("dueclaim.backend", name)
			admin := open(t, "root@tcp("+testserver.Private(t, kind, server.Options{}).Addr()+")/", "")
			failedOver(t, admin, name)
		})
	}
}

func failedOver(t *testing.T, admin *sql.DB, name string) {
	exec := func(stmts ...string) {
		t.Helper()
		for _, stmt := range stmts {
			_, err := admin.ExecContext(t.Context(), stmt)
			require.NoError(t, err, stmt)
		}
	}
	var port string
	require.NoError(t, admin.QueryRowContext(t.Context(), "SELECT @@port").Scan(&port))
	exec("CREATE DATABASE shop", "CREATE USER app@'%'", "GRANT ALL ON shop.* TO app@'%'")
	db := open(t, "app@tcp(127.0.0.1:"+port+")/shop", "")
	s := newStore(t, db, Options{})
	_, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id VARCHAR(40) CHARACTER SET ascii PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'new', due BIGINT NOT NULL, "+
		"token BIGINT, holder VARCHAR(64), lease BIGINT, KEY (state, due))")
	require.NoError(t, err)
	table := newTable(t, db, claim.Table{
		Name: "orders", ID: claim.IDColumn{Name: "id"},
		State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("at work"), Done: claim.Text("done")},
		Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.UnixMilli}},
		Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease", Kind: claim.UnixMilli},
	})
	require.NoError(t, table.Probe(t.Context()))
	insert(t, s, task("before"))
	grant(t, s, leaseOf("h", base), "before")
	var conns []*sql.Conn // several that stand
	for range 5 {
		c, err := db.Conn(t.Context())
		require.NoError(t, err)
		conns = append(conns, c)
	}
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	standing := db.Stats().OpenConnections
	require.GreaterOrEqual(t, standing, 5)

	exec("SET GLOBAL read_only = 1")
	require.ErrorIs(t, s.Probe(t.Context()), core.ErrNotDone)
	assert.Zero(t, db.Stats().OpenConnections, "all that stood were to the wrong server")
	require.ErrorIs(t, table.Probe(t.Context()), core.ErrNotDone)
	err = s.Insert(t.Context(), callNamed("after"), []core.Task{task("after")})
	require.ErrorIs(t, err, core.ErrNotDone)
	assert.ErrorContains(t, err, "read-only")
	_, err = s.Claim(t.Context(), []core.ID{"before"}, leaseOf("h2", base.Add(time.Hour)))
	require.ErrorIs(t, err, core.ErrNotDone)
	_, err = table.Claim(t.Context(), []core.ID{"x"}, leaseOf("h2", base))
	require.ErrorIs(t, err, core.ErrNotDone)

	// Connections that were made while it was read-only stand; new ones may write.
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	right := "READ_ONLY ADMIN"
	if strings.HasSuffix(name, "mysql") {
		right = "CONNECTION_ADMIN, SUPER"
	}
	exec("GRANT " + right + " ON *.* TO app@'%'")
	err = s.Insert(t.Context(), callNamed("after"), []core.Task{task("after")})
	if err != nil { // the one that stood
		require.ErrorIs(t, err, core.ErrNotDone)
		err = s.Insert(t.Context(), callNamed("after"), []core.Task{task("after")})
	}
	require.NoError(t, err, "a new connection")
	exec("SET GLOBAL read_only = 0")
}

// What can't be sent wasn't done.
func TestWithoutAConnectionNothingIsDone(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		newStore(t, open(t, dsn, ""), Options{})
		db := open(t, dsn, url.Values{"timeout": {"1s"}}.Encode())
		s, err := New(db, Options{})
		require.NoError(t, err)
		require.NoError(t, s.Probe(t.Context()))
		db.SetMaxOpenConns(1)
		c, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer c.Close()
		ctx, cancel := contextFor(t, 100*time.Millisecond)
		defer cancel()
		err = s.Insert(ctx, callNamed("x"), []core.Task{task("x")})
		require.ErrorIs(t, err, core.ErrNotDone)
		require.ErrorIs(t, err, ctx.Err())
	})
	nowhere := open(t, "root@tcp(127.0.0.1:1)/x", "timeout=1s")
	s, err := New(nowhere, Options{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Insert(t.Context(), callNamed("x"), []core.Task{task("x")}), core.ErrNotDone)
	s.known.Store(new(dialect)) // it answered before
	require.ErrorIs(t, s.Insert(t.Context(), callNamed("x"), []core.Task{task("x")}), core.ErrNotDone)
	table, err := NewTable(nowhere, fullDef("orders"))
	require.NoError(t, err)
	_, err = table.Claim(t.Context(), []core.ID{"1"}, leaseOf("h", base))
	require.ErrorIs(t, err, core.ErrNotDone)
	require.ErrorIs(t, table.Probe(t.Context()), core.ErrNotDone)
}

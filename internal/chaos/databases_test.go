package chaos

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// database is a server of the test's own with durable settings, and how to spoil it.
type database struct {
	server *testserver.Server
	admin  *sql.DB // one that no read-only switch holds back
	user   *sql.DB // the workers' login
	say    dialect
}

// dialect are the statements of a kind of server.
type dialect struct {
	connections string // lists those of others, by number
	kill        string // ends the one whose number follows
	frozen      []string
	thawed      []string
}

var mysqlDialect = dialect{
	connections: "SELECT id FROM information_schema.processlist WHERE user = 'worker'",
	kill:        "KILL ",
	frozen:      []string{"SET GLOBAL read_only = 1"},
	thawed:      []string{"SET GLOBAL read_only = 0"},
}

var postgresDialect = dialect{
	connections: "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'chaos'",
	kill:        "SELECT pg_terminate_backend(",
	frozen:      []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"},
	thawed:      []string{"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"},
}

// newDatabase starts a server and sets a bench up on it whose workers have no
// right to write to a server that is read-only.
func newDatabase(t *testing.T, store string) (*database, *fleet.Bench) {
	t.Helper()
	d := &database{say: mysqlDialect}
	at := fleet.Place{Store: store, Redis: testserver.PrivateRedis(t).URL()}
	driver, dsn := "mysql", ""
	switch store {
	case fleet.Postgres:
		d.say, driver = postgresDialect, "pgx"
		// Deadlocks are looked for after a second by default: 2,000 of them would take long.
		d.server = testserver.Private(t, server.Postgres, server.Options{Durable: true, Args: []string{"-c", "deadlock_timeout=20ms"}})
		at.DSN = d.server.URL()
		dsn = at.DSN + "&application_name=chaos"
	default:
		kind := map[string]server.Kind{fleet.MariaDB: server.MariaDB, fleet.MySQL: server.MySQL}[store]
		d.server = testserver.Private(t, kind, server.Options{Durable: true})
		dsn = d.server.URL()
		c, err := mysql.ParseDSN(dsn)
		require.NoError(t, err)
		c.User, c.Passwd = "worker", "secret"
		at.DSN = c.FormatDSN()
	}
	var err error
	d.admin, err = sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.admin.Close()) })
	d.admin.SetMaxIdleConns(2)
	if driver == "mysql" {
		for _, grant := range []string{"CREATE USER worker@'%' IDENTIFIED BY 'secret'",
			"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, CREATE VIEW, SHOW VIEW ON *.* TO worker@'%'"} {
			d.exec(t, grant)
		}
	}
	b := fleet.BenchAt(t, at)
	d.user = b.DB
	return d, b
}

// exec is a statement of the admin's, until it works: the server may just have
// been started, or the connection just have been killed.
func (d *database) exec(t *testing.T, statement string) {
	t.Helper()
	var err error
	require.True(t, fleet.Poll(30*time.Second, func() bool {
		_, err = d.admin.ExecContext(t.Context(), statement)
		return err == nil
	}), "%s: %v", statement, err)
}

func (d *database) restart(*testing.T) int {
	d.server.Kill()
	time.Sleep(200 * time.Millisecond)
	d.server.Restart()
	return 1
}

func (d *database) killConnection(t *testing.T, rng *rand.Rand) int {
	t.Helper()
	var numbers []string
	require.True(t, fleet.Poll(30*time.Second, func() bool {
		numbers = d.connections(t.Context())
		return len(numbers) > 0
	}), "somebody is connected")
	statement := d.say.kill + numbers[rng.IntN(len(numbers))]
	if strings.Contains(d.say.kill, "(") {
		statement += ")"
	}
	if _, err := d.admin.ExecContext(t.Context(), statement); err != nil {
		return d.killConnection(t, rng) // it had gone by itself
	}
	return 1
}

func (d *database) connections(ctx context.Context) (numbers []string) {
	rows, err := d.admin.QueryContext(ctx, d.say.connections)
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var number string
		if rows.Scan(&number) == nil {
			numbers = append(numbers, number)
		}
	}
	if rows.Err() != nil {
		return nil
	}
	return numbers
}

// readOnly has the server refuse all writes for a while.
func (d *database) readOnly(t *testing.T) int {
	t.Helper()
	for _, statement := range d.say.frozen {
		d.exec(t, statement)
	}
	refused := func() bool {
		_, err := d.user.ExecContext(t.Context(), "UPDATE "+claim.DefaultTable+" SET crashes = crashes + 0 WHERE id = 'none'")
		return code(err) == "1290" || code(err) == "25006"
	}
	require.True(t, fleet.Poll(20*time.Second, refused), "writes are refused")
	time.Sleep(1200 * time.Millisecond)
	for _, statement := range d.say.thawed {
		d.exec(t, statement)
	}
	require.True(t, fleet.Poll(20*time.Second, func() bool { return !refused() }), "writes are accepted again")
	return 1
}

// code is the server's own code of an error.
func code(err error) string {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &my):
		return map[uint16]string{1213: "1213", 1205: "1205", 1290: "1290"}[my.Number]
	case errors.As(err, &pg):
		return pg.Code
	}
	return ""
}

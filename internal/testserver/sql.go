package testserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/dueclaim/dueclaim/internal/testserver/require"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// setupTimeout bounds the making and the dropping of one test's database.
const setupTimeout = 30 * time.Second

// MariaDB returns a DSN for go-sql-driver/mysql, without options, of a fresh
// database on MariaDB that is dropped when the test ends.
func MariaDB(t testing.TB) string {
	t.Helper()
	return mysqlDatabase(t, server.MariaDB)
}

// MySQL is MariaDB on Oracle's MySQL.
func MySQL(t testing.TB) string {
	t.Helper()
	return mysqlDatabase(t, server.MySQL)
}

func mysqlDatabase(t testing.TB, k server.Kind) string {
	t.Helper()
	dsn, addr := locate(t, k)
	admin, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatalf("%s: %v", require.Variable(k), err)
	}
	if addr != "" {
		admin = mysqlRoot(addr)
	}
	return createMySQL(t, k, admin)
}

// mysqlRoot is the login to a server of our own.
func mysqlRoot(addr string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = "root", "tcp", addr
	return c
}

func createMySQL(t testing.TB, k server.Kind, admin *mysql.Config) string {
	t.Helper()
	name := databaseName()
	exec := func(ctx context.Context, statement string) error {
		connector, err := mysql.NewConnector(admin)
		if err != nil {
			return err
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		_, err = db.ExecContext(ctx, statement)
		return err
	}
	manageDatabase(t, string(k), "CREATE DATABASE "+name, "DROP DATABASE IF EXISTS "+name, exec)
	own := mysql.NewConfig()
	own.User, own.Passwd, own.Net, own.Addr, own.DBName = admin.User, admin.Passwd, admin.Net, admin.Addr, name
	return own.FormatDSN()
}

// Postgres returns a postgres:// URL of a fresh database that is dropped when
// the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	dsn, addr := locate(t, server.Postgres)
	if dsn == "" {
		dsn = postgresURL(addr)
	}
	return createPostgres(t, dsn)
}

// postgresURL is the login to a server of our own.
func postgresURL(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

func createPostgres(t testing.TB, admin string) string {
	t.Helper()
	u, err := url.Parse(admin)
	if err != nil || u.Host == "" {
		t.Fatalf("%s must be a postgres:// URL with a host", require.Variable(server.Postgres)) // the text may hold a password
	}
	name := databaseName()
	exec := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, statement)
		if closeErr := conn.Close(ctx); err == nil {
			err = closeErr
		}
		return err
	}
	manageDatabase(t, "postgres", "CREATE DATABASE "+name, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", exec)
	u.Path = "/" + name
	return u.String()
}

// manageDatabase makes a database now and drops it when the test ends.
func manageDatabase(t testing.TB, kind, create, drop string, exec func(context.Context, string) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), setupTimeout)
	defer cancel()
	if err := exec(ctx, create); err != nil {
		t.Fatalf("%s: %s: %v", kind, create, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		if err := exec(ctx, drop); err != nil {
			t.Logf("%s: %s: %v", kind, drop, err)
		}
	})
}

func databaseName() string { return fmt.Sprintf("db_%s", strings.ToLower(rand.Text()[:12])) }

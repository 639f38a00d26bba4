package wireproxy

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a client behind a proxy, and a number in the server that each add
// raises by one.
type counter struct {
	proxy   *Proxy
	add     func(ctx context.Context) error
	value   func() int                      // asks the server without the proxy
	refusal Fault                           // an error of the protocol
	refused func(t *testing.T, err error)   // checks that it came
	read    func(ctx context.Context) error // changes nothing
}

const addOne = "UPDATE counters SET n = n + 1 WHERE id = "

func onMySQL(database func(testing.TB) string, options string, args ...any) func(*testing.T) counter {
	return func(t *testing.T) counter {
		config, err := mysql.ParseDSN(database(t))
		require.NoError(t, err)
		p := New(t, MySQL, config.Addr)
		direct := openMySQL(t, config.FormatDSN())
		config.Addr = p.Addr()
		db := openMySQL(t, config.FormatDSN()+"?"+options)
		c := onSQL(t, p, direct, db, "?", args)
		c.refusal = Fault{Cut: ErrorReply, Code: "1213", Text: "Deadlock found"}
		c.refused = func(t *testing.T, err error) {
			var e *mysql.MySQLError
			require.ErrorAs(t, err, &e)
			require.Equal(t, "1213 40001 Deadlock found", strings.Join([]string{"1213", string(e.SQLState[:]), e.Message}, " "))
		}
		return c
	}
}

func openMySQL(t *testing.T, dsn string) *sql.DB {
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func onPostgres(mode pgx.QueryExecMode) func(*testing.T) counter {
	return func(t *testing.T) counter {
		u, err := url.Parse(testserver.Postgres(t))
		require.NoError(t, err)
		p := New(t, Postgres, u.Host)
		direct := openPostgres(t, u.String(), mode)
		u.Host = p.Addr()
		c := onSQL(t, p, direct, openPostgres(t, u.String(), mode), "$1", []any{1})
		c.refusal = Fault{Cut: ErrorReply, Code: "40001", Text: "could not serialize access"}
		c.refused = func(t *testing.T, err error) {
			require.ErrorContains(t, err, "could not serialize access (SQLSTATE 40001)")
		}
		return c
	}
}

func openPostgres(t *testing.T, url string, mode pgx.QueryExecMode) *sql.DB {
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	config.DefaultQueryExecMode = mode
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func onSQL(t *testing.T, p *Proxy, direct, db *sql.DB, mark string, args []any) counter {
	db.SetMaxOpenConns(1)
	for _, s := range []string{"CREATE TABLE counters (id INT PRIMARY KEY, n INT NOT NULL)", "INSERT INTO counters VALUES (1, 0), (2, 0)"} {
		_, err := direct.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	statement := addOne + mark
	if len(args) == 0 {
		statement = addOne + "1"
	}
	return counter{
		proxy: p,
		add: func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, statement, args...)
			return err
		},
		read: func(ctx context.Context) error { return db.QueryRowContext(ctx, "SELECT 1").Scan(new(int)) },
		value: func() (n int) {
			require.NoError(t, direct.QueryRowContext(context.Background(), "SELECT n FROM counters WHERE id = 1").Scan(&n))
			return n
		},
	}
}

func onRedis(protocol int) func(*testing.T) counter {
	return func(t *testing.T) counter {
		o, err := redis.ParseURL(testserver.PrivateRedis(t).URL())
		require.NoError(t, err)
		o.Protocol, o.MaxRetries, o.ReadTimeout, o.PoolSize, o.ContextTimeoutEnabled = protocol, -1, -1, 1, true
		direct := redis.NewClient(o)
		p := New(t, Redis, o.Addr)
		through := *o
		through.Addr = p.Addr()
		client := redis.NewClient(&through)
		t.Cleanup(func() { _ = client.Close(); _ = direct.Close() })
		return counter{
			proxy: p,
			add:   func(ctx context.Context) error { return client.Incr(ctx, "n").Err() },
			read:  func(ctx context.Context) error { return client.Get(ctx, "n").Err() },
			value: func() int {
				n, err := direct.Get(context.Background(), "n").Int()
				require.NoError(t, err)
				return n
			},
			refusal: Fault{Cut: ErrorReply, Code: "READONLY", Text: "You can't write"},
			refused: func(t *testing.T, err error) { require.EqualError(t, err, "READONLY You can't write") },
		}
	}
}

// clients are the ways that tests reach their servers.
var clients = map[string]func(*testing.T) counter{
	"mariadb text":         onMySQL(testserver.MariaDB, ""),
	"mariadb prepared":     onMySQL(testserver.MariaDB, "", 1),
	"mariadb interpolated": onMySQL(testserver.MariaDB, "interpolateParams=true", 1),
	"mysql prepared":       onMySQL(testserver.MySQL, "clientFoundRows=true", 1),
	"postgres cached":      onPostgres(pgx.QueryExecModeCacheStatement),
	"postgres exec":        onPostgres(pgx.QueryExecModeExec),
	"postgres simple":      onPostgres(pgx.QueryExecModeSimpleProtocol),
	"redis RESP2":          onRedis(2),
	"redis RESP3":          onRedis(3),
}

// onEach runs a test with every client.
func onEach(t *testing.T, test func(t *testing.T, c counter)) {
	for name, open := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t)
			require.NoError(t, c.add(t.Context()))
			test(t, c)
		})
	}
}

// soon polls for what comes in its own time.
func soon(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, 10*time.Second, 5*time.Millisecond, what)
}

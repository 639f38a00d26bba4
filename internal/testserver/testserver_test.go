package testserver_test

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestRedisIsSharedByTheTestsOfABinary(t *testing.T) {
	url := testserver.Redis(t)
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	require.NoError(t, client.Set(t.Context(), t.Name(), "x", 0).Err())
	t.Run("the next one gets the same", func(t *testing.T) {
		require.Equal(t, url, testserver.Redis(t))
	})
}

func TestEachTestGetsADatabaseOfItsOwn(t *testing.T) {
	for name, make := range map[string]func(testing.TB) string{"mariadb": testserver.MariaDB, "mysql": testserver.MySQL} {
		t.Run(name, func(t *testing.T) {
			first, second := make(t), make(t)
			require.NotEqual(t, first, second)
			require.NotContains(t, first, "?", "a DSN without options")
			var names []string
			t.Run("which ends with it", func(t *testing.T) {
				dsn := make(t)
				names = append(names, dsn[strings.LastIndex(dsn, "/")+1:])
				db, err := sql.Open("mysql", dsn)
				require.NoError(t, err)
				defer db.Close()
				_, err = db.ExecContext(t.Context(), "CREATE TABLE t (id INT PRIMARY KEY)")
				require.NoError(t, err)
			})
			db, err := sql.Open("mysql", first)
			require.NoError(t, err)
			defer db.Close()
			var left int
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+names[0]+"'").Scan(&left))
			require.Zero(t, left)
		})
	}
}

func TestPostgresAlsoThroughAPooler(t *testing.T) {
	url := testserver.Postgres(t)
	require.NotEqual(t, url, testserver.Postgres(t))
	pooled := testserver.PgBouncer(t, url)
	require.NotEqual(t, url, pooled)
	var names []string
	for _, each := range []string{url, pooled} {
		config, err := pgx.ParseConfig(each)
		require.NoError(t, err)
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		conn, err := pgx.ConnectConfig(t.Context(), config)
		require.NoError(t, err)
		var name string
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&name))
		require.NoError(t, conn.Close(t.Context()))
		names = append(names, name)
	}
	require.Equal(t, names[0], names[1])
}

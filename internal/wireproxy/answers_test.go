package wireproxy

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/testserver"
)

// results are all values of all results of a query.
func results(ctx context.Context, db *sql.DB, query string, args ...any) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return nil, err
			}
			for _, v := range values {
				all = append(all, v.String)
			}
		}
		all = append(all, "end")
	}
	return all, rows.Err()
}

// query is one whose answer has a form of its own.
type query struct {
	text string
	args []any
}

// sound says that of each answer the whole is replaced, no more and no less: what
// was left of it, or what of the next one was taken, would be seen in the next.
func sound(t *testing.T, p *Proxy, direct, db *sql.DB, refusal Fault, self string, queries []query) {
	ctx := t.Context()
	db.SetMaxOpenConns(1)
	var before, after string
	require.NoError(t, db.QueryRowContext(ctx, self).Scan(&before))
	for _, q := range queries {
		name := q.text[:min(40, len(q.text))]
		want, wantErr := results(ctx, direct, q.text, q.args...)
		for range 2 { // the second time its statement may be known
			got, err := results(ctx, db, q.text, q.args...)
			if wantErr == nil { // else how many rows come before it is the driver's affair
				assert.Equal(t, want, got, name)
			}
			assert.Equal(t, wantErr == nil, err == nil, "%s: %v, %v", name, wantErr, err)
			refusal.Prepare = wantErr != nil // which may come before there is anything to execute
			p.Arm(refusal)
			_, err = results(ctx, db, q.text, q.args...)
			require.ErrorContains(t, err, refusal.Text, name)
		}
	}
	require.NoError(t, db.QueryRowContext(ctx, self).Scan(&after))
	assert.Equal(t, before, after, "on one connection, all of it")
	assert.Equal(t, map[Cut]int{ErrorReply: p.Injected()[ErrorReply]}, p.Injected())
}

func TestAnswersOfMySQLEndWhereTheyEnd(t *testing.T) {
	long := strings.Repeat("x", 300)
	queries := []query{
		{"SELECT 1", nil},
		{"SELECT 1 WHERE 1 = 0", nil},
		{"SELECT NULL, '', '" + long + "', 18446744073709551615", nil},
		{"DO 1", nil},
		{"SELECT 1; SELECT 2, 3; DO 0; SELECT 4", nil},
		{"SELECT 1; SELECT nothing", nil},
		{"SELECT nothing", nil},
		{"WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, REPEAT('y', i) FROM n", nil},
		{"SELECT ?, ?", []any{int64(7), "s"}},
		{"SELECT ? FROM (SELECT 1) AS t WHERE 1 = 0", []any{"s"}},
		{"DO ?", []any{int64(7)}},
		{"SELECT nothing FROM nowhere WHERE a = ?", []any{int64(7)}},
	}
	if os.Getenv("DUECLAIM_STRESS") != "" {
		queries = append(queries, query{"SELECT REPEAT('z', 17000000)", nil}) // goes on in a second packet
	}
	for name, database := range map[string]func(testing.TB) string{"mariadb": testserver.MariaDB, "mysql": testserver.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := mysql.ParseDSN(database(t))
			require.NoError(t, err)
			config.MultiStatements = true
			direct := openMySQL(t, config.FormatDSN())
			_, err = direct.ExecContext(t.Context(), "SET GLOBAL max_allowed_packet = 67108864")
			require.NoError(t, err)
			p := New(t, MySQL, config.Addr)
			direct.SetMaxIdleConns(0) // new sessions, with the new limit
			config.Addr = p.Addr()
			sound(t, p, direct, openMySQL(t, config.FormatDSN()), Fault{Cut: ErrorReply, Code: "9007", Text: "on purpose"}, "SELECT CONNECTION_ID()", queries)
		})
	}
}

func TestAnswersOfPostgresEndWhereTheyEnd(t *testing.T) {
	queries := []query{
		{"SELECT 1", nil},
		{"SELECT 1 WHERE false", nil},
		{"SELECT i, repeat('y', i) FROM generate_series(1, 900) AS i", nil},
		{"SELECT nothing", nil},
		{"SELECT 1 / (i - 3) FROM generate_series(1, 5) AS i", nil}, // rows, then an error
		{"DO $$ BEGIN RAISE WARNING 'a notice'; END $$", nil},
		{"SELECT $1::text || 'q'", []any{"s"}},
		{"SELECT $1::text WHERE false", []any{"s"}},
	}
	for name, mode := range map[string]pgx.QueryExecMode{
		"cached": pgx.QueryExecModeCacheStatement, "described": pgx.QueryExecModeDescribeExec, "exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(testserver.Postgres(t))
			require.NoError(t, err)
			p := New(t, Postgres, u.Host)
			direct := openPostgres(t, u.String(), mode)
			u.Host = p.Addr()
			sound(t, p, direct, openPostgres(t, u.String(), mode), Fault{Cut: ErrorReply, Code: "40001", Text: "on purpose"}, "SELECT pg_backend_pid()", queries)
		})
	}
}

func TestAnswersOfRedisEndWhereTheyEnd(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		o, err := redis.ParseURL(testserver.PrivateRedis(t).URL())
		require.NoError(t, err)
		p := New(t, Redis, o.Addr)
		o.Addr, o.Protocol, o.MaxRetries, o.PoolSize = p.Addr(), protocol, -1, 1
		client := redis.NewClient(o)
		t.Cleanup(func() { _ = client.Close() })
		ctx := t.Context()
		id, err := client.ClientID(ctx).Result()
		require.NoError(t, err)
		require.NoError(t, client.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a\r\nb"}).Err())
		require.NoError(t, client.HSet(ctx, "h", "k", "v", "l", strings.Repeat("w", 70_000)).Err())
		for _, args := range [][]any{
			{"GET", "none"}, {"ZRANGE", "z", 0, -1, "WITHSCORES"}, {"HGETALL", "h"}, {"LRANGE", "none", 0, -1}, {"ZSCORE", "z", "a\r\nb"},
			{"EVAL", "return {1, {2, 'x'}, redis.call('GET', 'none')}", 0}, {"EVAL", "return redis.error_reply('MINE own')", 0}, {"NOSUCH"},
		} {
			p.Arm(Fault{Cut: ErrorReply, Code: "LOADING", Text: "on purpose"})
			require.ErrorContains(t, client.Do(ctx, args...).Err(), "LOADING on purpose", "%v", args)
			got, err := client.Echo(ctx, "still in step").Result()
			require.NoError(t, err)
			require.Equal(t, "still in step", got, "%v", args)
		}
		p.Arm(Fault{Cut: ErrorReply, Code: "BUSY", Text: "on purpose", Needle: "b"})
		replies, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, key := range []string{"a", "b", "c"} {
				p.Incr(ctx, key)
			}
			return nil
		})
		require.ErrorContains(t, err, "BUSY on purpose")
		assert.NoError(t, replies[0].Err())
		assert.NoError(t, replies[2].Err())
		again, err := client.ClientID(ctx).Result()
		require.NoError(t, err)
		assert.Equal(t, id, again, "on one connection, all of it")

		sub := client.Subscribe(ctx, "news")
		_, err = sub.Receive(ctx)
		require.NoError(t, err)
		require.NoError(t, client.Publish(ctx, "news", "hello").Err())
		message, err := sub.ReceiveMessage(ctx)
		require.NoError(t, err)
		assert.Equal(t, "hello", message.Payload)
		require.NoError(t, sub.Close())
	}
}

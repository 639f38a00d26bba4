package testserver_test

import (
	"context"
	"database/sql"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

func TestAPrivateRedisCanBeKilledAndIsEmptyAfterItsRestart(t *testing.T) {
	s := testserver.PrivateRedis(t)
	require.NotEqual(t, "redis://"+s.Addr()+"/0", testserver.Redis(t))
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer client.Close()
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
	addr, pid := s.Addr(), s.Pid()

	s.Kill()
	require.Zero(t, s.Pid())
	require.Error(t, client.Ping(t.Context()).Err())

	s.Restart()
	require.Equal(t, addr, s.Addr())
	require.NotEqual(t, pid, s.Pid())
	require.Equal(t, redis.Nil, client.Get(t.Context(), "k").Err())
}

func TestAStoppedServerAnswersNothingUntilItMayContinue(t *testing.T) {
	s := testserver.PrivateRedis(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ReadTimeout: 200 * time.Millisecond})
	defer client.Close()
	s.Stop()
	require.Error(t, client.Ping(t.Context()).Err())
	s.Cont()
	require.NoError(t, client.Ping(t.Context()).Err())
	s.Stop() // and its end isn't held up by this
}

func TestAStoppedPostgresAnswersNothingOnAnOpenConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux does Stop reach the processes of the connections")
	}
	s := testserver.PrivatePostgres(t)
	db, err := sql.Open("pgx", s.URL())
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	require.NoError(t, db.PingContext(t.Context()))
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = db.ExecContext(ctx, "SELECT 1")
	require.Error(t, err)
	s.Cont()
	_, err = db.ExecContext(t.Context(), "SELECT 1")
	require.NoError(t, err)
}

func TestADurableRedisKeepsItsDataOverAKill(t *testing.T) {
	s := testserver.Private(t, server.Redis, server.Options{Durable: true})
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
	s.Restart()
	require.Equal(t, "v", client.Get(t.Context(), "k").Val())
}

func TestWhatWasCommittedSurvivesTheKillOfASQLServer(t *testing.T) {
	for _, c := range []struct {
		name, driver string
		start        func(testing.TB) *testserver.Server
	}{
		{"mariadb", "mysql", testserver.PrivateMariaDB},
		{"mysql", "mysql", testserver.PrivateMySQL},
		{"postgres", "pgx", testserver.PrivatePostgres},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.start(t)
			db, err := sql.Open(c.driver, s.URL())
			require.NoError(t, err)
			defer db.Close()
			for _, statement := range []string{"CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)"} {
				_, err = db.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			s.Kill()
			require.Eventually(t, func() bool { return db.PingContext(t.Context()) != nil }, 10*time.Second, 10*time.Millisecond,
				"it is gone, and what it left running too")
			s.Restart()
			var n int
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n))
			require.Equal(t, 3, n)
		})
	}
}

func TestARedisClusterServesAllSlots(t *testing.T) {
	addrs := testserver.RedisCluster(t)
	require.Len(t, addrs, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	defer client.Close()
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		require.NoError(t, client.Set(t.Context(), key, "v", 0).Err())
	}
	var masters atomic.Int32
	require.NoError(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		masters.Add(1)
		return node.Ping(ctx).Err()
	}))
	require.EqualValues(t, 3, masters.Load())
}

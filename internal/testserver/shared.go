package testserver

import (
	"os"
	"sync"
	"testing"

	"github.com/dueclaim/dueclaim/internal/testserver/require"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// shared holds the one server of each kind that the tests of this binary use
// together. It ends with the process.
var shared = map[server.Kind]func() (*server.Server, error){
	server.Redis:    sharedServer(server.Redis),
	server.Valkey:   sharedServer(server.Valkey),
	server.MariaDB:  sharedServer(server.MariaDB),
	server.MySQL:    sharedServer(server.MySQL),
	server.Postgres: sharedServer(server.Postgres),
}

func sharedServer(k server.Kind) func() (*server.Server, error) {
	return sync.OnceValues(func() (*server.Server, error) { return server.Start(k, server.Options{}) })
}

// locate returns the DSN that the environment gives for a kind, or else starts
// the shared server and returns its address.
func locate(t testing.TB, k server.Kind) (dsn, addr string) {
	t.Helper()
	if dsn := os.Getenv(require.Variable(k)); dsn != "" {
		return dsn, ""
	}
	s, err := shared[k]()
	if err != nil {
		missing(t, k, err)
	}
	return "", s.Addr()
}

// Redis returns the URL of a Redis server that other tests use too: take keys
// that nobody else takes, and flush nothing.
func Redis(t testing.TB) string {
	t.Helper()
	return redisURL(t, server.Redis)
}

// Valkey is Redis on a Valkey server.
func Valkey(t testing.TB) string {
	t.Helper()
	return redisURL(t, server.Valkey)
}

func redisURL(t testing.TB, k server.Kind) string {
	t.Helper()
	dsn, addr := locate(t, k)
	if dsn != "" {
		return dsn
	}
	return "redis://" + addr + "/0"
}

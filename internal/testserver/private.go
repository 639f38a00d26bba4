package testserver

import (
	"net/url"
	"os"
	"testing"

	"github.com/dueclaim/dueclaim/internal/testserver/require"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// Server is a server that belongs to one test, which may flush, kill, freeze
// and restart it. Its methods may be called from any goroutine of the test; a
// step that can't be done fails the test.
type Server struct {
	t testing.TB
	s *server.Server
}

// PrivateRedis starts a Redis server for this test alone. It keeps nothing on
// disk: after Kill and Restart it is empty.
func PrivateRedis(t testing.TB) *Server {
	t.Helper()
	return Private(t, server.Redis, server.Options{})
}

// PrivateMariaDB starts a MariaDB server for this test alone. What was
// committed survives Kill.
func PrivateMariaDB(t testing.TB) *Server {
	t.Helper()
	return Private(t, server.MariaDB, server.Options{})
}

// PrivateMySQL is PrivateMariaDB with Oracle's MySQL.
func PrivateMySQL(t testing.TB) *Server {
	t.Helper()
	return Private(t, server.MySQL, server.Options{})
}

// PrivatePostgres starts a Postgres server for this test alone. What was
// committed survives Kill.
func PrivatePostgres(t testing.TB) *Server {
	t.Helper()
	return Private(t, server.Postgres, server.Options{})
}

// Private starts a server for this test alone, with options of its own. It
// ends with the test.
func Private(t testing.TB, k server.Kind, o server.Options) *Server {
	t.Helper()
	s, err := server.Start(k, o)
	if err != nil && os.Getenv(require.Variable(k)) != "" {
		// The kind is tested all the same, with the server that the environment names.
		t.Skipf("NOT tested: %s: a server that may be killed: %v", k, err)
	}
	if err != nil {
		missing(t, k, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Logf("end %s: %v", k, err)
		}
	})
	return &Server{t: t, s: s}
}

// PgBouncer starts a pooler in transaction mode before the Postgres server of
// a URL, and returns the URL that leads through it to the same database.
func PgBouncer(t testing.TB, postgresURL string) string {
	t.Helper()
	u, err := url.Parse(postgresURL)
	if err != nil {
		t.Fatal("PgBouncer: not a postgres:// URL") // the text may hold a password
	}
	u.Host = Private(t, server.PgBouncer, server.Options{Upstream: postgresURL}).Addr()
	return u.String()
}

// Addr is where it listens, "127.0.0.1:PORT"; a restart keeps it.
func (s *Server) Addr() string { return s.s.Addr() }

// Pid is its process id, 0 while it doesn't run.
func (s *Server) Pid() int { return s.s.Pid() }

// Log is the end of its log.
func (s *Server) Log() string { return s.s.Log() }

// URL is what the drivers take. On a SQL server each call makes a fresh
// database, so call it once; the server must be running.
func (s *Server) URL() string {
	s.t.Helper()
	switch s.s.Kind() {
	case server.MariaDB, server.MySQL:
		return createMySQL(s.t, s.s.Kind(), mysqlRoot(s.Addr()))
	case server.Postgres:
		return createPostgres(s.t, postgresURL(s.Addr()))
	}
	return "redis://" + s.Addr() + "/0"
}

// Kill ends it at once (SIGKILL) and returns when it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	s.check("kill", s.s.Kill())
}

// Stop freezes it (SIGSTOP): connections stay open, and nothing answers.
func (s *Server) Stop() {
	s.t.Helper()
	s.check("stop", s.s.Stop())
}

// Cont lets it go on after Stop (SIGCONT).
func (s *Server) Cont() {
	s.t.Helper()
	s.check("continue", s.s.Cont())
}

// Restart starts it again on the same port and data, killing it first where it
// still runs, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.check("restart", s.s.Restart())
}

func (s *Server) check(step string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%s %s: %v", step, s.s.Kind(), err)
	}
}

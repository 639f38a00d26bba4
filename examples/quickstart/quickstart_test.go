package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/examples/internal/parts"
	"github.com/dueclaim/dueclaim/examples/internal/program"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestMain(m *testing.M) { program.Main(m) }

func TestEveryTaskRunsOnceAlthoughAWorkerIsKilled(t *testing.T) {
	for _, pair := range []struct {
		name         string
		index, store func(t *testing.T) string
		more         bool // where there is time
	}{
		{"heap+sqlite", heap, sqlite, false},
		{"redis+sqlite", redis, sqlite, true},
		{"redis+mariadb", redis, mariadb, false},
		{"redis+postgres (pgx)", redis, postgres, false},
		{"heap+postgres (pgx)", heap, postgres, true},
	} {
		if pair.more && os.Getenv("DUECLAIM_STRESS") == "" {
			continue
		}
		t.Run(pair.name, func(t *testing.T) {
			t.Attr("dueclaim.backend", "pair:"+pair.name)
			index, store := pair.index(t), pair.store(t)
			status, out, _ := program.Run(t, "-index", index, "-store", store, "-tasks", "300", "-over", "2s", "-lease", "1s")
			assert.Equal(t, 0, status)
			for _, want := range []string{
				`(?m)^  scheduled +300 `, `(?m)^  completed +300 `, `(?m)^  lost +0 `, `(?m)^  ran twice +0 `,
				`(?m)^  taken over +\d+ +from worker-3, which was killed: it had claimed them and was running \d+$`,
				`killed worker-3`, `(?m)^  lateness +p50 .* p99 .* max .*\(of \d+\)$`,
				`every task ran, and none was completed twice`,
			} {
				assert.Regexp(t, want, out)
			}
			assertNothingLeft(t, index, store)
		})
	}
}

// assertNothingLeft looks for rows of any queue; the database is the test's own.
func assertNothingLeft(t *testing.T, index, store string) {
	t.Helper()
	if store == "sqlite" {
		return // the file is gone
	}
	p, err := parts.Open(t.Context(), parts.Choice{Index: index, Store: store, Table: table})
	require.NoError(t, err)
	defer p.Close()
	var n int
	require.NoError(t, p.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
	assert.Zero(t, n, "rows left behind")
}

func heap(*testing.T) string       { return "heap" }
func sqlite(*testing.T) string     { return "sqlite" }
func redis(t *testing.T) string    { return testserver.Redis(t) }
func mariadb(t *testing.T) string  { return program.MySQLURL(t, testserver.MariaDB(t)) }
func postgres(t *testing.T) string { return testserver.Postgres(t) }

func TestAGivenSQLiteFileIsUsedAgain(t *testing.T) {
	t.Attr("dueclaim.backend", "pair:heap+sqlite")
	store := "sqlite:" + t.TempDir() + "/kept.db"
	for range 2 {
		status, out, _ := program.Run(t, "-store", store, "-tasks", "30", "-over", "1s", "-lease", "500ms", "-workers", "2")
		assert.Equal(t, 0, status)
		assert.Regexp(t, `(?m)^  completed +30 `, out)
	}
	assertNothingLeft(t, "heap", store)
}

func TestAWrongCommandLineIsRefusedWithStatus2(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no tasks":             {[]string{"-tasks", "0"}, "-tasks is 0, want 1"},
		"one worker":           {[]string{"-workers", "1"}, "-workers is 1, want 2"},
		"no time":              {[]string{"-over", "1ms"}, "-over is 1ms, want 1s"},
		"a lease too short":    {[]string{"-lease", "1ms"}, "-lease is 1ms, want 500ms"},
		"no number":            {[]string{"-tasks", "many"}, "invalid value"},
		"an unknown flag":      {[]string{"-speed", "1"}, "not defined: -speed"},
		"an argument":          {[]string{"now"}, `unexpected argument "now"`},
		"an unknown index":     {[]string{"-index", "memcached"}, `index "memcached" is unknown; want heap or redis://`},
		"an unknown store":     {[]string{"-store", "oracle://scott:tiger@db/x"}, "store oracle://… is of an unknown kind; want sqlite"},
		"a store without host": {[]string{"-store", "mysql:///db"}, "mysql://… is not a URL with a host"},
		"a broken URL":         {[]string{"-store", "postgres://scott:ti%ger@db/x"}, "postgres://… is not a URL with a host"},
		"no database":          {[]string{"-store", "mysql://scott:tiger@db:3306/"}, "mysql://scott:xxxxx@db:3306/ names no database"},
		"no path":              {[]string{"-store", "sqlite:"}, "has no path"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, stderr := program.Run(t, c.args...)
			assert.Equal(t, 2, status)
			assert.Contains(t, stderr, c.says)
			assert.NotContains(t, stderr, "tiger")
		})
	}
}

func TestAServerThatIsNotThereIsNamedWithoutItsPassword(t *testing.T) {
	for name, args := range map[string][]string{
		"redis":    {"-index", "redis://user:s3cret@127.0.0.1:1/0"},
		"mysql":    {"-store", "mysql://user:s3cret@127.0.0.1:1/db"},
		"postgres": {"-store", "postgres://user:s3cret@127.0.0.1:1/db"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := program.Run(t, args...)
			assert.Equal(t, 1, status)
			assert.Contains(t, stderr, "no answer from "+name+" at 127.0.0.1:1: ")
			assert.NotContains(t, stdout+stderr, "s3cret")
		})
	}
}

func TestCtrlCEndsAllProcesses(t *testing.T) { endsAllProcesses(t, syscall.SIGINT, 1) }

func TestAKilledParentLeavesNoOrphans(t *testing.T) { endsAllProcesses(t, syscall.SIGKILL, -1) }

// endsAllProcesses sends a signal to the parent when its workers are at work.
func endsAllProcesses(t *testing.T, signal os.Signal, status int) {
	t.Attr("dueclaim.backend", "pair:heap+sqlite")
	r := program.Start(t, "-over", "1m")
	require.Eventually(t, func() bool { return r.Shown(" done 1") }, 30*time.Second, 50*time.Millisecond) // at work
	require.NoError(t, r.Cmd.Process.Signal(signal))
	began := time.Now()
	assert.Equal(t, status, r.Wait(t)) // of the parent; returns when all have ended
	assert.Less(t, time.Since(began), 30*time.Second)
}

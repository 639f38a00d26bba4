package main

import (
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

func TestTheBooksAreRightAlthoughAWorkerIsKilled(t *testing.T) {
	for _, pair := range []struct {
		name         string
		index, store func(t *testing.T) string
	}{
		{"heap+sqlite", heap, sqlite},
		{"redis+mariadb", redis, mariadb},
		{"redis+postgres (pgx)", redis, postgres},
	} {
		t.Run(pair.name, func(t *testing.T) {
			t.Attr("dueclaim.backend", "pair:"+pair.name)
			index, store := pair.index(t), pair.store(t)
			status, out, _ := program.Run(t, "-index", index, "-store", store, "-orders", "400", "-speed", "900", "-lease", "1s")
			assert.Equal(t, 0, status)
			for _, want := range []string{
				`(?m)^  orders +400 `, `(?m)^  paid +[1-9]`, `(?m)^  cancelled +[1-9]`, `(?m)^  found paid +[1-9]`,
				`killed worker-3`, `(?m)^  lateness +p50 .* p99 .* max .*\(of \d+\)$`,
				`ok +every unpaid order was cancelled, exactly once`, `ok +no paid order was touched`,
				`ok +the stock of every product adds up`, `ok +no task is left over`,
			} {
				assert.Regexp(t, want, out)
			}
			assert.NotContains(t, out, "FAILED")
			assertNothingLeft(t, index, store)
		})
	}
}

// assertNothingLeft looks for tasks and for tables of the shop; the database is
// the test's own.
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
	assert.Zero(t, n, "tasks left behind")
	require.NoError(t, p.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'shop%'").Scan(&n))
	assert.Zero(t, n, "tables left behind")
}

func heap(*testing.T) string       { return "heap" }
func sqlite(*testing.T) string     { return "sqlite" }
func redis(t *testing.T) string    { return testserver.Redis(t) }
func mariadb(t *testing.T) string  { return program.MySQLURL(t, testserver.MariaDB(t)) }
func postgres(t *testing.T) string { return testserver.Postgres(t) }

func TestAWrongCommandLineIsRefusedWithStatus2(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"negative orders":   {[]string{"-orders", "-1"}, "-orders is -1, want 1"},
		"one worker":        {[]string{"-workers", "1"}, "-workers is 1, want 2"},
		"no speed":          {[]string{"-speed", "NaN"}, "-speed is NaN, want 1 to 3600"},
		"a lease too short": {[]string{"-lease", "1ms"}, "-lease is 1ms, want 500ms"},
		"an argument":       {[]string{"now"}, `unexpected argument "now"`},
		"an unknown store":  {[]string{"-store", "oracle://scott:tiger@db/x"}, "store oracle://… is of an unknown kind; want sqlite"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, stderr := program.Run(t, c.args...)
			assert.Equal(t, 2, status)
			assert.Contains(t, stderr, c.says)
			assert.NotContains(t, stderr, "tiger")
		})
	}
}

func TestCtrlCEndsAllProcesses(t *testing.T) {
	t.Attr("dueclaim.backend", "pair:heap+sqlite")
	r := program.Start(t)
	require.Eventually(t, func() bool { return r.Shown("orders open") }, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, r.Cmd.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 1, r.Wait(t)) // returns when all processes have ended
	assert.True(t, r.Shown("orders: interrupted"))
}

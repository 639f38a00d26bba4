package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// pair is an index and a database.
type pair struct {
	name         string
	index, store func(t *testing.T) string
}

var (
	heapSQLite    = pair{"heap+sqlite", heap, sqlite}
	heapMySQL     = pair{"heap+mysql", heap, mysql}
	redisSQLite   = pair{"redis+sqlite", redis, sqlite}
	redisMariaDB  = pair{"redis+mariadb", redis, mariadb}
	redisMySQL    = pair{"redis+mysql", redis, mysql}
	redisPostgres = pair{"redis+postgres (pgx)", redis, postgres}
	heapMariaDB   = pair{"heap+mariadb", heap, mariadb}
	heapPostgres  = pair{"heap+postgres (pgx)", heap, postgres}
)

// runCase is a run of the example.
type runCase struct {
	pair
	mode mode
	args []string
}

// runs are a few short runs, and with DUECLAIM_STRESS set also all modes on all
// pairs, and 20,000 orders: about twenty minutes.
func runs() []runCase {
	short := []string{"-orders", "400", "-speed", "900", "-lease", "1s", "-kills", "1"}
	all := []runCase{{heapSQLite, full, short}, {redisMariaDB, status, short}, {redisPostgres, transition, short}}
	if os.Getenv("DUECLAIM_STRESS") == "" {
		return all
	}
	for _, m := range []mode{full, status, transition} {
		for _, p := range []pair{heapSQLite, redisSQLite, heapMariaDB, redisMariaDB, heapMySQL, redisMySQL, heapPostgres, redisPostgres} {
			all = append(all, runCase{p, m, []string{"-orders", "1500", "-speed", "900"}})
		}
		for _, p := range []pair{redisMariaDB, redisMySQL} {
			all = append(all, runCase{p, m, []string{"-orders", "20000", "-speed", "900", "-kills", "5"}})
		}
	}
	return all
}

func TestTheBooksAreRightAlthoughWorkersAreKilled(t *testing.T) {
	for i, c := range runs() {
		t.Run(c.name+" "+string(c.mode)+" "+c.args[1], func(t *testing.T) {
			if i < 3 {
				t.Parallel() // most of their time is waiting
			}
			play(t, c)
		})
	}
}

// play runs the example and looks at what it says and what it leaves behind.
func play(t *testing.T, c runCase) {
	t.Helper()
	t.Attr("dueclaim.backend", "pair:"+c.name)
	index, store := c.index(t), c.store(t)
	exit, out, _ := program.Run(t, slices.Concat(c.args, []string{"-mode", string(c.mode), "-index", index, "-store", store})...)
	t.Log(out)
	assert.Equal(t, 0, exit)
	for _, want := range []string{
		`(?m)^verify:$`, `(?m)^  orders +[1-9]`, `(?m)^  paid +[1-9]`, `(?m)^  cancelled +[1-9]`, `(?m)^  forgotten +[1-9]`,
		`killed worker-\d`, `(?m)^  lateness +p50 .* p99 .* max .*\(of \d+\)$`,
		`ok +every unpaid order was cancelled, exactly once`, `ok +no paid order was touched`,
		`ok +the stock of every product is what it was, less the paid orders`, `ok +no order is left open`,
	} {
		assert.Regexp(t, want, out)
	}
	assert.NotContains(t, out, "FAILED")
	assert.Equal(t, c.mode == full, strings.Contains(out, "dueclaim_token"), "only mode full adds columns, as Suggest says")
	found := regexp.MustCompile(`(\d+) were to be cancelled, and sweeps found them`).FindStringSubmatch(out)
	require.Len(t, found, 2)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	assert.Positive(t, n, "orders that the index was not told of were cancelled")
	assertNothingLeft(t, index, store)
}

// assertNothingLeft looks for tables in the database, which is the test's own.
func assertNothingLeft(t *testing.T, index, store string) {
	t.Helper()
	if store == "sqlite" {
		return // the file is gone
	}
	p, err := parts.Open(t.Context(), parts.Choice{Index: index, Store: store})
	require.NoError(t, err)
	defer p.Close()
	var n int
	require.NoError(t, p.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'shop%' OR table_name LIKE 'dueclaim%'").Scan(&n))
	assert.Zero(t, n, "tables left behind")
}

func heap(*testing.T) string       { return "heap" }
func sqlite(*testing.T) string     { return "sqlite" }
func redis(t *testing.T) string    { return testserver.Redis(t) }
func mariadb(t *testing.T) string  { return program.MySQLURL(t, testserver.MariaDB(t)) }
func mysql(t *testing.T) string    { return program.MySQLURL(t, testserver.MySQL(t)) }
func postgres(t *testing.T) string { return testserver.Postgres(t) }

func TestAWrongCommandLineIsRefusedWithStatus2(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"an unknown mode":   {[]string{"-mode", "best"}, `-mode is "best", want status, full or transition`},
		"negative orders":   {[]string{"-orders", "-1"}, "-orders is -1, want 1"},
		"too many orders":   {[]string{"-orders", "1000000"}, "want 1 to 130000"},
		"no worker":         {[]string{"-workers", "0"}, "-workers is 0, want 1"},
		"negative kills":    {[]string{"-kills", "-1"}, "-kills is -1, want 0"},
		"no speed":          {[]string{"-speed", "NaN"}, "-speed is NaN, want 1 to 3600"},
		"a lease too short": {[]string{"-lease", "500ms"}, "-lease is 500ms, want whole seconds from 1s"},
		"no whole seconds":  {[]string{"-lease", "1500ms"}, "-lease is 1.5s, want whole seconds"},
		"an argument":       {[]string{"now"}, `unexpected argument "now"`},
		"an unknown store":  {[]string{"-store", "oracle://scott:tiger@db/x"}, "store oracle://… is of an unknown kind; want sqlite"},
	} {
		t.Run(name, func(t *testing.T) {
			exit, _, stderr := program.Run(t, c.args...)
			assert.Equal(t, 2, exit)
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

package acceptance

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// meter reads the counters of private servers, on connections of its own.
type meter struct {
	redis *redis.Client
	admin *sql.Conn
	sql   string // answers with the number of statements so far, its own apart
	own   int64  // how much a reading itself adds
}

// newMeteredBench is newBench on servers that nobody else asks anything.
func newMeteredBench(t *testing.T, p fleet.Pair) (*fleet.Bench, *meter) {
	t.Helper()
	at := fleet.Place{Store: p.Store}
	m := &meter{}
	var driver, admin string
	switch p.Store {
	case fleet.MariaDB:
		s := testserver.PrivateMariaDB(t)
		at.DSN = s.URL()
		driver, admin = "mysql", at.DSN
		m.sql, m.own = "SHOW GLOBAL STATUS LIKE 'Questions'", 1
	case fleet.Postgres:
		s := testserver.Private(t, server.Postgres, server.Options{Args: []string{"-c", "autovacuum=off"}})
		at.DSN = s.URL()
		// From another database: what is asked there doesn't count.
		driver, admin = "pgx", "postgres://postgres@"+s.Addr()+"/postgres?sslmode=disable"
		name := at.DSN[strings.LastIndex(at.DSN, "/")+1:]
		name, _, _ = strings.Cut(name, "?")
		m.sql = "SELECT 'commits', xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '" + name + "'"
	}
	db, err := sql.Open(driver, admin)
	require.NoError(t, err)
	m.admin, err = db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.admin.Close())
		require.NoError(t, db.Close())
	})
	r := testserver.PrivateRedis(t)
	at.Redis = r.URL()
	m.redis = redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, m.redis.Close()) })
	b := fleet.BenchAt(t, at)
	b.Server = r
	return b, m
}

// watch lets a process be for a while and returns what it used.
func (m *meter) watch(t *testing.T, w *fleet.Process, d time.Duration) usage {
	t.Helper()
	cpu, queries, calls, began := cpuOf(t, w), m.queries(t), m.calls(t), time.Now()
	time.Sleep(d)
	over := time.Since(began)
	perSecond := func(n float64) float64 { return n / over.Seconds() }
	u := usage{over: over}
	after := m.calls(t)
	var details []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		n := float64(after[name] - calls[name])
		if name == "info" {
			n-- // the meter's own
		}
		switch {
		case n <= 0:
			continue
		case inScripts[name]:
			u.inScripts += perSecond(n)
		default:
			u.commands += perSecond(n)
		}
		details = append(details, fmt.Sprintf("%s %.0f", name, n))
	}
	u.queries = perSecond(float64(m.queries(t) - queries - m.own))
	u.cpu = perSecond((cpuOf(t, w) - cpu).Seconds())
	u.detail = strings.Join(details, ", ")
	return u
}

// inScripts are the commands that only our scripts send; INFO counts them beside
// the EVALSHA that did.
var inScripts = map[string]bool{
	"zrangebyscore": true, "zadd": true, "zmscore": true, "zscore": true, "zrem": true, "publish": true, "zcard": true, "zremrangebyrank": true,
	"exists": true, "hget": true, "hset": true,
}

var callsLine = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+)`)

// calls is how often each command was called.
func (m *meter) calls(t *testing.T) map[string]int64 {
	t.Helper()
	text, err := m.redis.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	n := map[string]int64{}
	for _, line := range callsLine.FindAllStringSubmatch(text, -1) {
		n[line[1]], err = strconv.ParseInt(line[2], 10, 64)
		require.NoError(t, err)
	}
	return n
}

// queries is how many statements the store's server was sent.
func (m *meter) queries(t *testing.T) int64 {
	t.Helper()
	var name string
	var n int64
	require.NoError(t, m.admin.QueryRowContext(context.WithoutCancel(t.Context()), m.sql).Scan(&name, &n))
	return n
}

// ticks is how many of a process's clock ticks make a second, on every Linux that
// Go runs on.
const ticks = 100

// cpuOf is the time that a process has had on the processors, user and system.
func cpuOf(t *testing.T, w *fleet.Process) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Pid()))
	require.NoError(t, err)
	// Behind the name, which may hold spaces: state is field 3, utime 14, stime 15.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var sum int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(t, err)
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks
}

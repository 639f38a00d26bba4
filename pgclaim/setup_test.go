package pgclaim

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
)

// driver is one way to reach the server.
type driver struct {
	native bool
	mode   pgx.QueryExecMode
	// session is what each connection starts with, such as another isolation level.
	session map[string]string
}

func (d driver) name() string {
	if d.native {
		return "pgx " + d.mode.String()
	}
	return "sql " + d.mode.String()
}

func (d driver) backend() string {
	if d.native {
		return "store:postgres (pgx)"
	}
	return "store:postgres (database/sql)"
}

var (
	allModes = []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	// Values travel in one form or the other in all of them.
	binaryAndText = []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol}

	native   = driver{native: true, mode: pgx.QueryExecModeCacheStatement}
	standard = driver{mode: pgx.QueryExecModeCacheStatement}
)

// open returns a Store on the database at url; its pool is closed with the test.
func (d driver) open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	return d.openBy(t, url, o, new(line.Line))
}

// openBy is open by a line that may be cut.
func (d driver) openBy(t testing.TB, url string, o Options, l *line.Line) *Store {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.ConnConfig.DefaultQueryExecMode = d.mode
	config.ConnConfig.DialFunc = l.Dial
	for name, value := range d.session {
		config.ConnConfig.RuntimeParams[name] = value
	}
	config.MaxConns = 20
	if d.native {
		pool, err := pgxpool.NewWithConfig(context.Background(), config)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		s, err := New(pool, o)
		require.NoError(t, err)
		return s
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s, err := NewSQL(db, o)
	require.NoError(t, err)
	return s
}

// migrated is open on a fresh database with the table made.
func (d driver) migrated(t testing.TB, o Options) *Store {
	t.Helper()
	s := d.open(t, testserver.Postgres(t), o)
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

// stress says whether there is time for everything.
func stress() bool { return os.Getenv("DUECLAIM_STRESS") != "" }

// eachMode runs f in every query exec mode through both drivers.
func eachMode(t *testing.T, f func(t *testing.T, d driver)) { eachModeOf(t, allModes, f) }

func eachModeOf(t *testing.T, modes []pgx.QueryExecMode, f func(t *testing.T, d driver)) {
	for _, native := range []bool{true, false} {
		for _, mode := range modes {
			d := driver{native: native, mode: mode}
			t.Run(d.name(), func(t *testing.T) {
				t.Attr("dueclaim.backend", d.backend())
				f(t, d)
			})
		}
	}
}

// eachDriver runs f through both drivers in the mode that they have by default.
func eachDriver(t *testing.T, f func(t *testing.T, d driver)) {
	for _, d := range []driver{native, standard} {
		t.Run(d.name(), func(t *testing.T) {
			t.Attr("dueclaim.backend", d.backend())
			f(t, d)
		})
	}
}

// begin starts a transaction of a user's. In it, insert and settle are the Tx
// methods of either driver.
func (s *Store) begin(t testing.TB, ctx context.Context) *userTx {
	t.Helper()
	if s.pool != nil {
		tx, err := s.pool.Begin(ctx)
		require.NoError(t, err)
		u := &userTx{s: s, pgx: tx, runner: pgxRunner{tx, s.modes.override()}}
		t.Cleanup(func() { u.rollback() })
		return u
	}
	tx, err := s.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	u := &userTx{s: s, sql: tx, runner: sqlRunner{tx, s.modes.override()}}
	t.Cleanup(func() { u.rollback() })
	return u
}

type userTx struct {
	s      *Store
	pgx    pgx.Tx
	sql    *sql.Tx
	runner runner
}

func (u *userTx) insert(ctx context.Context, call core.Call, tasks ...core.Task) error {
	if u.pgx != nil {
		return u.s.InsertTx(ctx, u.pgx, call, tasks)
	}
	return u.s.InsertSQLTx(ctx, u.sql, call, tasks)
}

func (u *userTx) settle(ctx context.Context, now time.Time, x ...core.Settlement) error {
	if u.pgx != nil {
		return u.s.SettleTx(ctx, u.pgx, now, x)
	}
	return u.s.SettleSQLTx(ctx, u.sql, now, x)
}

func (u *userTx) exec(ctx context.Context, sql string, args ...any) error {
	return u.runner.run(ctx, sql, args, func(scanner) error { return nil })
}

func (u *userTx) commit(ctx context.Context) error {
	if u.pgx != nil {
		return u.pgx.Commit(ctx)
	}
	return u.sql.Commit()
}

func (u *userTx) rollback() {
	if u.pgx != nil {
		_ = u.pgx.Rollback(context.Background())
		return
	}
	_ = u.sql.Rollback()
}

// exec runs a statement of the test's own.
func (s *Store) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	r, err := s.runner(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.run(t.Context(), sql, args, func(scanner) error { return nil }), sql)
}

// text returns the first column of all rows, as text.
func (s *Store) text(t testing.TB, sql string, args ...any) []string {
	t.Helper()
	r, err := s.runner(t.Context())
	require.NoError(t, err)
	var out []string
	require.NoError(t, r.run(t.Context(), sql, args, func(scan scanner) error {
		var line string
		if err := scan(&line); err != nil {
			return err
		}
		out = append(out, line)
		return nil
	}), sql)
	return out
}

// base is the tests' time zero.
var base = time.UnixMilli(1_800_000_000_000).UTC()

func at(seconds int) time.Time { return base.Add(time.Duration(seconds) * time.Second) }

// lease asks at a time, in seconds, for ten of them.
func lease(holder string, now int) core.Lease {
	return core.Lease{Holder: holder, Now: at(now), DueBy: at(now), Until: at(now + 10)}
}

func call(id string) core.Call { return core.Call{ID: id, Now: base} }

func task(id string, due int) core.Task {
	return core.Task{ID: core.ID(id), Kind: "k", Payload: []byte("p-" + id), Due: at(due)}
}

// tasks makes n of them, all due at once.
func tasks(n int) ([]core.Task, []core.ID) {
	out, ids := make([]core.Task, n), make([]core.ID, n)
	for i := range out {
		out[i] = task(fmt.Sprintf("task-%06d", i), 0)
		ids[i] = out[i].ID
	}
	return out, ids
}

// claimOne claims one id and requires it to be granted.
func (s *Store) claimOne(t testing.TB, id core.ID, l core.Lease) core.Claimed {
	t.Helper()
	claimed, err := s.Claim(t.Context(), []core.ID{id}, l)
	require.NoError(t, err)
	require.Equal(t, core.Granted, claimed[0].Verdict, "%s: %s", id, claimed[0].Verdict)
	return claimed[0]
}

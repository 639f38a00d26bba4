package pgclaim

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// demotable makes a server of which the connections that stand take no writes any more, and
// new ones do, as after a failover of a managed cluster. It returns a login to it.
func demotable(t *testing.T) (login string, demote func()) {
	t.Helper()
	u, err := url.Parse(testserver.PrivatePostgres(t).URL())
	require.NoError(t, err)
	admin := native.open(t, u.String(), Options{})
	admin.exec(t, "CREATE ROLE app LOGIN SUPERUSER")
	u.User = url.User("app")
	resetAfter(t, u.String(), "default_transaction_read_only") // the database is dropped by a session like any other
	return u.String(), func() {
		admin.exec(t, "ALTER ROLE app SET default_transaction_read_only = off")
		admin.exec(t, "ALTER SYSTEM SET default_transaction_read_only = on")
		admin.exec(t, "SELECT pg_reload_conf()")
		require.Eventually(t, func() bool { return admin.text(t, "SHOW default_transaction_read_only")[0] == "on" }, 20*time.Second, 10*time.Millisecond)
	}
}

// resetAfter ends a setting of the whole server with the test.
func resetAfter(t *testing.T, login, setting string) {
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, login)
		require.NoError(t, err)
		for _, statement := range []string{"ALTER SYSTEM RESET " + setting, "SELECT pg_reload_conf()"} {
			_, err = conn.Exec(ctx, statement)
			require.NoError(t, err)
		}
		require.NoError(t, conn.Close(ctx))
	})
}

func TestAConnectionToAServerThatBecameReadOnlyIsThrownAway(t *testing.T) {
	for _, c := range []struct {
		name, attrs string
		driver      driver
	}{{"pgx", "", native}, {"pgx, read-write", "&target_session_attrs=read-write", native}, {"sql", "", standard}} {
		t.Run(c.name, func(t *testing.T) {
			t.Attr("dueclaim.backend", c.driver.backend())
			login, demote := demotable(t)
			s := c.driver.open(t, login+c.attrs, Options{})
			require.NoError(t, s.Migrate(t.Context()))
			require.NoError(t, s.Probe(t.Context()))
			const conns = 3
			fill(t, s, conns)
			demote()
			refused := 0
			for {
				err := s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)})
				if err == nil {
					break
				}
				require.ErrorIs(t, err, core.ErrNotDone)
				require.ErrorContains(t, err, "the server is read-only; connect to the primary")
				refused++
				require.LessOrEqual(t, refused, conns)
			}
			assert.Positive(t, refused, "some connection stood")
		})
	}
}

// fill makes n connections of the pool.
func fill(t *testing.T, s *Store, n int) {
	t.Helper()
	var give []func()
	for range n {
		if s.pool != nil {
			conn, err := s.pool.Acquire(t.Context())
			require.NoError(t, err)
			give = append(give, conn.Release)
			continue
		}
		conn, err := s.db.Conn(t.Context())
		require.NoError(t, err)
		give = append(give, func() { require.NoError(t, conn.Close()) })
	}
	for _, f := range give {
		f()
	}
}

// A worker with nothing to do finds out by its probes, and tasks that come then run.
func TestAWorkersTasksRunAfterAFailover(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		login, demote := demotable(t)
		s := d.open(t, login, Options{})
		require.NoError(t, s.Migrate(t.Context()))
		fill(t, s, 10)
		ran := make(chan core.ID, 10)
		handler := core.HandlerFunc(func(_ context.Context, job *core.Job) error { ran <- job.Task.ID; return nil })
		index := heapindex.New()
		scheduler, err := core.New(index, s, handler, core.Options{Lease: 6 * time.Second})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		end := make(chan error, 1)
		go func() { end <- scheduler.Run(ctx) }()
		defer func() { stop(); require.NoError(t, <-end) }()
		run := func(id core.ID) {
			t.Helper()
			fresh := d.open(t, login, Options{})
			require.NoError(t, fresh.Insert(t.Context(), core.Call{ID: "c-" + string(id), Now: time.Now()}, []core.Task{{ID: id, Due: core.FloorMilli(time.Now())}}))
			select {
			case got := <-ran:
				require.Equal(t, id, got)
			case <-time.After(20 * time.Second):
				require.Fail(t, "not run", "%s; health %+v", id, scheduler.Health())
			}
		}
		run("before")
		demote()
		run("after")
	})
}

func TestAProbeFailsWhereAWriteWould(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		owner := d.open(t, url, Options{})
		require.ErrorIs(t, owner.Probe(t.Context()), core.ErrNotMigrated)
		require.NoError(t, owner.Migrate(t.Context()))
		owner.exec(t, "CREATE TABLE orders (id text PRIMARY KEY, status text, at timestamptz, updated timestamptz)")
		def := claim.Table{
			Name: "orders", ID: claim.IDColumn{Name: "id", Kind: claim.TextID},
			State: claim.StateColumn{Name: "status", Pending: claim.Text("p"), Done: claim.Text("d")},
			Due:   claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.Timestamp, Digits: 6}},
		}
		require.NoError(t, owner.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
		before := owner.rows(t)
		locked := owner.begin(t, t.Context())
		require.NoError(t, locked.exec(t.Context(), "SELECT 1 FROM dueclaim_tasks FOR UPDATE"))
		probes := func(s *Store) map[string]func(context.Context) error {
			table, err := NewTable(s.pool, def)
			if s.pool == nil {
				table, err = NewSQLTable(s.db, def)
			}
			require.NoError(t, err)
			return map[string]func(context.Context) error{"store": s.Probe, "table": table.Probe}
		}
		for name, probe := range probes(owner) {
			require.NoError(t, probe(t.Context()), name)
		}
		assert.Equal(t, before, owner.rows(t))
		d.session = map[string]string{"default_transaction_read_only": "on"}
		for name, probe := range probes(d.open(t, url, Options{})) {
			require.ErrorContains(t, probe(t.Context()), "read-only", name)
		}
	})
}

// It waits in the process, and nothing has been sent.
func TestACallThatGotNoConnectionIsNotDone(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		if s.pool == nil {
			s.db.SetMaxOpenConns(1)
		} else {
			config := s.pool.Config()
			config.MaxConns = 1
			pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			s, err = New(pool, Options{})
			require.NoError(t, err)
		}
		warnings, err := s.CheckSetup(t.Context())
		require.NoError(t, err)
		assert.Contains(t, fmt.Sprint(warnings), "the pool has at most 1 connections, and a scheduler uses up to 10 at a time")
		tx := s.begin(t, t.Context())
		for name, write := range writes(s) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			err := write(ctx, time.Time{})
			cancel()
			require.ErrorIs(t, err, core.ErrNoConnection, name)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
		}
		tx.rollback()
		require.NoError(t, s.Probe(t.Context()), "it is free again")
	})
}

func TestACallThatReachedNoServerIsNotDone(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		s := d.open(t, "postgres://u@"+listener.Addr().String()+"/db?sslmode=disable&connect_timeout=5", Options{})
		for name, write := range writes(s) {
			require.ErrorIs(t, write(t.Context(), time.Time{}), core.ErrNotDone, name)
		}
	})
}

// A call is not "not done" when only its last statement was.
func TestAFailureAfterAChangeIsAnUnknownOutcome(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		in, ids := tasks(chunkRows + 1)
		require.NoError(t, s.Insert(t.Context(), call("c"), in))
		s.exec(t, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE lock_not_available; END $$`)
		s.exec(t, fmt.Sprintf(`CREATE TRIGGER no BEFORE UPDATE ON dueclaim_tasks FOR EACH ROW WHEN (old.id = '%s') EXECUTE FUNCTION no()`, ids[chunkRows]))
		_, err := s.Claim(t.Context(), ids, lease("h", 0))
		require.Error(t, err)
		require.NotErrorIs(t, err, core.ErrNotDone)
		_, err = s.Claim(t.Context(), ids[chunkRows:], lease("h2", 0))
		require.ErrorIs(t, err, core.ErrNotDone)
	})
}

// bare passes on queries and no more, as wrappers did before they knew NamedValueChecker.
type bare struct{ c *stdlib.Conn }

func (b bare) Prepare(q string) (sqldriver.Stmt, error) { return b.c.Prepare(q) }
func (b bare) Close() error                             { return b.c.Close() }
func (b bare) Begin() (sqldriver.Tx, error)             { return b.c.Begin() } //nolint:staticcheck // of driver.Conn
func (b bare) QueryContext(ctx context.Context, q string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return b.c.QueryContext(ctx, q, args)
}

type barer struct{ sqldriver.Connector }

func (b barer) Connect(ctx context.Context) (sqldriver.Conn, error) {
	c, err := b.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return bare{c.(*stdlib.Conn)}, nil
}

func TestAWrapperThatHidesPgxIsNamedByTheFirstCall(t *testing.T) {
	t.Attr("dueclaim.backend", standard.backend())
	config, err := pgx.ParseConfig(testserver.Postgres(t))
	require.NoError(t, err)
	db := sql.OpenDB(barer{stdlib.GetConnector(*config)})
	t.Cleanup(func() { _ = db.Close() })
	s, err := NewSQL(db, Options{})
	require.NoError(t, err)
	_, now := s.Now(t.Context())
	for name, err := range map[string]error{
		"migrate": s.Migrate(t.Context()), "now": now, "insert": s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}),
	} {
		require.ErrorIs(t, err, core.ErrInvalid, name)
		require.ErrorContains(t, err, "pgclaim.bare, which has no CheckNamedValue", name)
		require.ErrorContains(t, err, "passes on driver.NamedValueChecker", name)
	}
}

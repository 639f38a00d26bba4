package scenarios

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
)

const (
	mariadb  = "mariadb"
	postgres = "postgres"
)

// dueKey is the Redis key of the default queue's entries.
const dueKey = "dueclaim:{default}:due"

// place says where the data are; it goes to worker processes.
type place struct {
	Redis string // "": a heap of each process's own
	Store string
	DSN   string
}

// handles are one process's way to the backends.
type handles struct {
	index core.TimeIndex
	store interface {
		core.Store
		core.TimeSource
		core.Purger
		Migrate(ctx context.Context) error
	}
	my    *mysqlclaim.Store // the store, where it is that
	pg    *pgclaim.Store
	pool  *pgxpool.Pool
	db    *sql.DB
	redis *redis.Client
	close []func() error
}

func open(ctx context.Context, at place) (*handles, error) {
	h := &handles{index: heapindex.New()}
	if at.Redis != "" {
		o, err := redis.ParseURL(at.Redis)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled, o.ReadTimeout, o.MaxRetries = true, time.Second, 1
		h.redis = redis.NewClient(o)
		h.close = append(h.close, h.redis.Close)
		if h.index, err = redisindex.New(h.redis, redisindex.Options{}); err != nil {
			return nil, err
		}
	}
	switch at.Store {
	case mariadb:
		c, err := mysql.ParseDSN(at.DSN)
		if err != nil {
			return nil, err
		}
		c.Logger = &mysql.NopLogger{}
		connector, err := mysql.NewConnector(c)
		if err != nil {
			return nil, err
		}
		h.db = sql.OpenDB(connector)
		h.db.SetMaxIdleConns(8)
		h.close = append(h.close, h.db.Close)
		h.my, err = mysqlclaim.New(h.db, mysqlclaim.Options{})
		h.store = h.my
		return h, err
	case postgres:
		pool, err := pgxpool.New(ctx, at.DSN)
		if err != nil {
			return nil, err
		}
		h.pool, h.db = pool, stdlib.OpenDBFromPool(pool)
		h.close = append(h.close, h.db.Close, func() error { pool.Close(); return nil })
		h.pg, err = pgclaim.New(pool, pgclaim.Options{})
		h.store = h.pg
		return h, err
	}
	return nil, fmt.Errorf("no such store: %q", at.Store)
}

func (h *handles) shut() error {
	var errs []error
	for _, f := range h.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// bench is what one scenario plays on: a database of its own, a Redis of its own,
// this process's handles and a producer.
type bench struct {
	*handles
	t        *testing.T
	at       place
	producer *core.Producer
	server   *testserver.Server // Redis
}

// newBench sets one up, with further arguments for the Redis server.
func newBench(t *testing.T, store string, redisArgs ...string) *bench {
	t.Helper()
	at := place{Store: store}
	switch store {
	case mariadb:
		at.DSN = testserver.MariaDB(t)
	case postgres:
		at.DSN = testserver.Postgres(t)
	}
	r := testserver.Private(t, server.Redis, server.Options{Args: redisArgs})
	at.Redis = r.URL()
	b := &bench{t: t, at: at, server: r}
	b.handles = b.another()
	require.NoError(t, b.store.Migrate(t.Context()))
	b.producer = b.newProducer(core.ProducerOptions{})
	return b
}

// another returns handles of their own on the same data.
func (b *bench) another() *handles {
	b.t.Helper()
	h, err := open(b.t.Context(), b.at)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, h.shut()) })
	return h
}

func (b *bench) newProducer(o core.ProducerOptions) *core.Producer {
	b.t.Helper()
	return newProducer(b.t, b.index, b.store, o)
}

func newProducer(t *testing.T, idx core.TimeIndex, store core.Claimer, o core.ProducerOptions) *core.Producer {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	p, err := core.NewProducer(idx, store, o)
	require.NoError(t, err)
	return p
}

// tasks are n of a kind, the i-th due at due(i), with the ids prefix-0000 and on.
func tasks(prefix, kind string, n int, due func(i int) time.Time) []core.Task {
	list := make([]core.Task, n)
	for i := range list {
		list[i] = core.Task{ID: core.ID(fmt.Sprintf("%s-%04d", prefix, i)), Kind: kind, Due: due(i)}
	}
	return list
}

func idsOf(list []core.Task) []core.ID {
	ids := make([]core.ID, len(list))
	for i, task := range list {
		ids[i] = task.ID
	}
	return ids
}

// schedule stores n tasks and returns their ids.
func (b *bench) schedule(prefix, kind string, n int, due func(i int) time.Time) []core.ID {
	b.t.Helper()
	list := tasks(prefix, kind, n, due)
	require.NoError(b.t, b.producer.Schedule(b.t.Context(), list...))
	return idsOf(list)
}

// now is a due time for tasks that are due at once.
func now(int) time.Time { return time.Now() }

// row is what the table says about a task, read beside the store.
type row struct {
	Status            claim.Status
	Due               int64 // 0: NULL
	Token             int64
	Holder            string
	LeaseUntil        int64
	Attempts, Crashes int
	LastError         string
	FinishedAt        int64
}

func (b *bench) rows() map[core.ID]row {
	b.t.Helper()
	rows, err := b.db.QueryContext(b.t.Context(), "SELECT id, status, COALESCE(due, 0), token, holder, lease_until, attempts, crashes, "+
		"COALESCE(last_error, ''), COALESCE(finished_at, 0) FROM "+claim.DefaultTable)
	require.NoError(b.t, err)
	defer rows.Close()
	all := map[core.ID]row{}
	for rows.Next() {
		var id core.ID
		var r row
		require.NoError(b.t, rows.Scan(&id, &r.Status, &r.Due, &r.Token, &r.Holder, &r.LeaseUntil, &r.Attempts, &r.Crashes, &r.LastError, &r.FinishedAt))
		all[id] = r
	}
	require.NoError(b.t, rows.Err())
	return all
}

// count is how many rows are in a state.
func (b *bench) count(status claim.Status) int {
	b.t.Helper()
	var n int
	require.NoError(b.t, b.db.QueryRowContext(b.t.Context(),
		"SELECT COUNT(*) FROM "+claim.DefaultTable+" WHERE status = '"+string(status)+"'").Scan(&n))
	return n
}

func (b *bench) exec(statement string) {
	b.t.Helper()
	_, err := b.db.ExecContext(b.t.Context(), statement)
	require.NoError(b.t, err)
}

// onBoth plays a scenario on MariaDB and on Postgres, side by side.
func onBoth(t *testing.T, play func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	for _, store := range []string{mariadb, postgres} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			play(t, newBench(t, store))
		})
	}
}

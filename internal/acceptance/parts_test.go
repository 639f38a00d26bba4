package acceptance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// pair is a choice of backends by the names of the closing report.
type pair struct{ index, store string }

func (p pair) name() string { return p.index + "+" + p.store }

const (
	heap     = "heap"
	viaRedis = "redis"
	sqlite   = "sqlite"
	mariadb  = "mariadb"
	postgres = "postgres (pgx)"
)

// place says where a pair's data are; it goes to the worker processes.
type place struct {
	Redis string // "": a heap of each process's own
	Store string // one of the names above
	DSN   string
}

// parts are a pair, opened.
type parts struct {
	index core.TimeIndex
	store migrator
	db    *sql.DB
	redis *redis.Client // nil with a heap
	rest  func()        // closes connections that aren't in use
	close []func() error
}

type migrator interface {
	core.Store
	Migrate(ctx context.Context) error
}

func open(ctx context.Context, at place) (*parts, error) {
	p := &parts{index: heapindex.New(), rest: func() {}}
	if at.Redis != "" {
		o, err := redis.ParseURL(at.Redis)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled, o.ReadTimeout, o.MaxRetries = true, time.Second, 1
		p.redis = redis.NewClient(o)
		p.close = append(p.close, p.redis.Close)
		if p.index, err = redisindex.New(p.redis, redisindex.Options{}); err != nil {
			return nil, err
		}
	}
	var err error
	switch at.Store {
	case sqlite:
		err = p.openSQLite(ctx, at.DSN)
	case mariadb:
		err = p.openMariaDB(at.DSN)
	case postgres:
		err = p.openPostgres(ctx, at.DSN)
	}
	return p, err
}

func (p *parts) openSQLite(ctx context.Context, path string) error {
	s, err := sqliteclaim.Open(ctx, path, sqliteclaim.Options{})
	if err != nil {
		return err
	}
	p.close = append(p.close, s.Close)
	p.store, p.db = s, s.DB()
	return nil
}

func (p *parts) openMariaDB(dsn string) error {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	c.Logger = &mysql.NopLogger{} // servers are killed here
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	p.db = sql.OpenDB(connector)
	p.db.SetMaxIdleConns(8)
	p.close = append(p.close, p.db.Close)
	p.store, err = mysqlclaim.New(p.db, mysqlclaim.Options{})
	return err
}

func (p *parts) openPostgres(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	p.db, p.rest = stdlib.OpenDBFromPool(pool), pool.Reset
	p.close = append(p.close, p.db.Close, func() error { pool.Close(); return nil })
	p.store, err = pgclaim.New(pool, pgclaim.Options{})
	return err
}

func (p *parts) shut() error {
	var errs []error
	for _, f := range p.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// bench is a pair on which one test works: its place, and this process's own
// handles and producer.
type bench struct {
	*parts
	at       place
	producer *core.Producer
	server   *testserver.Server // the private Redis, nil with a heap
}

// newBench sets a pair up with a Redis of its own and a database of its own.
func newBench(t *testing.T, p pair) *bench {
	t.Helper()
	at := place{Store: p.store}
	switch p.store {
	case sqlite:
		at.DSN = t.TempDir() + "/tasks.db"
	case mariadb:
		at.DSN = testserver.MariaDB(t)
	case postgres:
		at.DSN = testserver.Postgres(t)
	}
	var server *testserver.Server
	if p.index == viaRedis {
		server = testserver.PrivateRedis(t)
		at.Redis = server.URL()
	}
	b := benchAt(t, at)
	b.server = server
	return b
}

func benchAt(t *testing.T, at place) *bench {
	t.Helper()
	p, err := open(t.Context(), at)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.shut()) })
	require.NoError(t, p.store.Migrate(t.Context()))
	b := &bench{parts: p, at: at}
	b.producer, err = core.NewProducer(p.index, p.store, core.ProducerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

// row is what the store's table says about a task, read beside the store.
type row struct {
	status            claim.Status
	token             int64
	attempts, crashes int
}

func (b *bench) rows(t *testing.T) map[core.ID]row {
	t.Helper()
	rows, err := b.db.QueryContext(t.Context(), "SELECT id, status, token, attempts, crashes FROM "+claim.DefaultTable)
	require.NoError(t, err)
	defer rows.Close()
	all := map[core.ID]row{}
	for rows.Next() {
		var id core.ID
		var r row
		require.NoError(t, rows.Scan(&id, &r.status, &r.token, &r.attempts, &r.crashes))
		all[id] = r
	}
	require.NoError(t, rows.Err())
	return all
}

// schedule stores n tasks of a kind, the i-th due at due(i), under the ids
// prefix-i.
func (b *bench) schedule(t *testing.T, prefix, kind string, n int, due func(i int) time.Time) []core.ID {
	t.Helper()
	tasks, ids := make([]core.Task, n), make([]core.ID, n)
	for i := range tasks {
		ids[i] = core.ID(fmt.Sprintf("%s-%d", prefix, i))
		tasks[i] = core.Task{ID: ids[i], Kind: kind, Due: due(i)}
	}
	require.NoError(t, b.producer.Schedule(t.Context(), tasks...))
	return ids
}

// has tells whether an id is of those that were scheduled under prefix.
func has(id core.ID, prefix string) bool { return strings.HasPrefix(string(id), prefix+"-") }

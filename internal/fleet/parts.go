package fleet

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/index"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// Pair is a choice of backends by the names of the closing report.
type Pair struct{ Index, Store string }

// Name is the pair's name in the closing report.
func (p Pair) Name() string { return p.Index + "+" + p.Store }

// The backends that a Pair may name.
const (
	Heap     = "heap"
	Redis    = "redis"
	SQLite   = "sqlite"
	MariaDB  = "mariadb"
	MySQL    = "mysql"
	Postgres = "postgres (pgx)"
)

// DueKey is the Redis key of the default queue's entries.
const DueKey = "dueclaim:{default}:due"

// Place says where a pair's data are; it goes to the worker processes.
type Place struct {
	Redis string // its URL; "": a heap of each process's own
	// Failover lets each process go on from a heap while Redis is away.
	Failover bool
	Store    string // one of the names above
	DSN      string
}

// Parts are a pair, opened.
type Parts struct {
	Index core.TimeIndex
	Store Migrator
	Clock core.TimeSource // the store's, nil with SQLite
	DB    *sql.DB         // the store's, or one that shares its pool
	Pool  *pgxpool.Pool   // under DB, nil but with Postgres
	Redis *redis.Client   // nil with a heap
	Rest  func()          // closes connections that aren't in use
	close []func() error
}

// Migrator is a store with its own table and all that can be done with it.
type Migrator interface {
	core.Store
	core.Purger
	// Migrate creates or upgrades the table.
	Migrate(ctx context.Context) error
}

// Open opens what a Place names. Shut closes it.
func Open(ctx context.Context, at Place) (*Parts, error) {
	p := &Parts{Index: heapindex.New(), Rest: func() {}}
	if at.Redis != "" {
		o, err := redis.ParseURL(at.Redis)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled, o.ReadTimeout, o.MaxRetries = true, time.Second, 1
		p.Redis = redis.NewClient(o)
		p.close = append(p.close, p.Redis.Close)
		if p.Index, err = redisindex.New(p.Redis, redisindex.Options{}); err != nil {
			return nil, err
		}
		if at.Failover {
			if p.Index, err = index.Failover(p.Index, heapindex.New()); err != nil {
				return nil, err
			}
		}
	}
	var err error
	switch at.Store {
	case SQLite:
		err = p.openSQLite(ctx, at.DSN)
	case MariaDB, MySQL:
		err = p.openMySQL(at.DSN)
	case Postgres:
		err = p.openPostgres(ctx, at.DSN)
	default:
		err = errors.New("no such store: " + at.Store)
	}
	return p, err
}

func (p *Parts) openSQLite(ctx context.Context, path string) error {
	s, err := sqliteclaim.Open(ctx, path, sqliteclaim.Options{})
	if err != nil {
		return err
	}
	p.close = append(p.close, s.Close)
	p.Store, p.DB = s, s.DB()
	return nil
}

func (p *Parts) openMySQL(dsn string) error {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	c.Logger = &mysql.NopLogger{} // servers are killed here
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	p.DB = sql.OpenDB(connector)
	p.DB.SetMaxIdleConns(8)
	p.close = append(p.close, p.DB.Close)
	s, err := mysqlclaim.New(p.DB, mysqlclaim.Options{})
	p.Store, p.Clock = s, s
	return err
}

func (p *Parts) openPostgres(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	p.Pool, p.DB, p.Rest = pool, stdlib.OpenDBFromPool(pool), pool.Reset
	p.close = append(p.close, p.DB.Close, func() error { pool.Close(); return nil })
	s, err := pgclaim.New(pool, pgclaim.Options{})
	p.Store, p.Clock = s, s
	return err
}

// Shut closes what Open opened.
func (p *Parts) Shut() error {
	var errs []error
	for _, f := range p.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

type serverKind = server.Kind

// serverArgs are what the servers run with beside their own defaults: durable, as
// in production, and with buffers that hold the working set.
var serverArgs = map[serverKind][]string{
	server.Postgres: {"-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB"},
	server.MariaDB:  {"--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M"},
	server.MySQL:    {"--innodb-buffer-pool-size=512M", "--innodb-redo-log-capacity=1G", "--log-bin", "--server-id=1"},
}

// Sizes of the pools of connections, for all systems.
const (
	conns      = 16 // to a database
	redisConns = 64
)

// machine is the servers of one run, each started when it is first asked for.
type machine struct {
	running map[serverKind]*server.Server
	named   atomic.Int64
}

func newMachine() *machine { return &machine{running: map[serverKind]*server.Server{}} }

// lacks says why a system can't be measured here, "" where it can.
func (m *machine) lacks(s system) string {
	for _, kind := range s.servers {
		if _, err := server.Find(kind); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (m *machine) server(k serverKind) (*server.Server, error) {
	if s := m.running[k]; s != nil {
		return s, nil
	}
	durable := k != server.Redis // an index is a hint, and the peer's own default is this
	s, err := server.Start(k, server.Options{Durable: durable, Args: serverArgs[k]})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", k, err)
	}
	m.running[k] = s
	return s, nil
}

func (m *machine) close() error {
	var errs []error
	for _, s := range m.running {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// fresh is a name that no earlier run of this machine had.
func (m *machine) fresh() string { return fmt.Sprintf("bench_%d", m.named.Add(1)) }

// redis returns a client of an empty server.
func (m *machine) redis(ctx context.Context) (*redis.Client, error) {
	s, err := m.server(server.Redis)
	if err != nil {
		return nil, err
	}
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: redisConns})
	return c, c.FlushAll(ctx).Err()
}

// postgres returns a pool on a database of its own, and what closes the one and
// drops the other, so that nothing of it is cleaned up during later runs.
func (m *machine) postgres(ctx context.Context, conns int) (*pgxpool.Pool, func() error, error) {
	s, err := m.server(server.Postgres)
	if err != nil {
		return nil, nil, err
	}
	name := m.fresh()
	admin := func(ctx context.Context, statement string) error {
		pool, err := pgxpool.New(ctx, "postgres://postgres@"+s.Addr()+"/postgres?sslmode=disable")
		if err != nil {
			return err
		}
		defer pool.Close()
		_, err = pool.Exec(ctx, statement)
		return err
	}
	if err := admin(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, nil, err
	}
	pool, err := pgxpool.New(ctx, fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&pool_max_conns=%d", s.Addr(), name, conns))
	if err != nil {
		return nil, nil, err
	}
	return pool, func() error {
		pool.Close()
		return admin(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

// tidyPostgres is queue.prepare on Postgres.
func tidyPostgres(ctx context.Context, pool *pgxpool.Pool) error {
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// mysql returns a pool on a database of its own on MariaDB or MySQL, and what closes
// the one and drops the other.
func (m *machine) mysql(ctx context.Context, k serverKind, conns int) (*sql.DB, func() error, error) {
	s, err := m.server(k)
	if err != nil {
		return nil, nil, err
	}
	name := m.fresh()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr = "root", "tcp", s.Addr()
	admin := func(ctx context.Context, statement string) error {
		db, err := sql.Open("mysql", config.FormatDSN())
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, statement)
		return errors.Join(err, db.Close())
	}
	if err := admin(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, nil, err
	}
	ours := config.Clone()
	ours.DBName = name
	db, err := sql.Open("mysql", ours.FormatDSN())
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, func() error {
		return errors.Join(db.Close(), admin(context.WithoutCancel(ctx), "DROP DATABASE "+name))
	}, nil
}

// tempDir is a folder for a SQLite file.
func tempDir() (string, error) { return os.MkdirTemp("", "dueclaim-bench-") }

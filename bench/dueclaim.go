package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// slots of a dueclaim worker process in the throughput workloads; River's bench has
// as many workers.
const slots = 2000

// conns is the size of each pool of database connections, for all systems.
const conns = 16

// Names of dueclaim's pairs.
const (
	redisPostgres = "dueclaim redis+postgres"
	redisMariaDB  = "dueclaim redis+mariadb"
	redisMySQL    = "dueclaim redis+mysql"
	heapSQLite    = "dueclaim heap+sqlite"
	heapMemory    = "dueclaim heap+memory"
)

// parts are an index and a store for a dueclaim queue.
type parts struct {
	index core.TimeIndex
	store store
	free  func() error
}

type store interface {
	core.Store
	Migrate(ctx context.Context) error
}

// memory has nothing to migrate.
type memory struct{ *claim.Memory }

func (memory) Migrate(context.Context) error { return nil }

func dueclaimSystems() []system {
	const how = "Slots 2000, else as it comes"
	pair := func(name string, open func(ctx context.Context, m *machine, keep bool) (parts, error), servers ...serverKind) system {
		return system{name: name, settings: how, servers: servers,
			open: func(ctx context.Context, m *machine, o options) (queue, error) {
				p, err := open(ctx, m, o.keep)
				if err != nil {
					return nil, err
				}
				if err := p.store.Migrate(ctx); err != nil {
					return nil, errors.Join(err, p.free())
				}
				return newDueclaim(p, o)
			}}
	}
	return []system{
		pair(redisPostgres, func(ctx context.Context, m *machine, keep bool) (parts, error) {
			idx, free, err := m.redisIndex(ctx)
			if err != nil {
				return parts{}, err
			}
			pool, err := m.postgres(ctx, conns)
			if err != nil {
				return parts{}, err
			}
			s, err := pgclaim.New(pool, pgclaim.Options{DeleteFinished: !keep})
			return parts{idx, s, func() error { pool.Close(); return free() }}, err
		}, server.Redis, server.Postgres),
		pair(redisMariaDB, onMySQL(server.MariaDB), server.Redis, server.MariaDB),
		pair(redisMySQL, onMySQL(server.MySQL), server.Redis, server.MySQL),
		pair(heapSQLite, func(ctx context.Context, _ *machine, keep bool) (parts, error) {
			dir, err := tempDir()
			if err != nil {
				return parts{}, err
			}
			s, err := sqliteclaim.Open(ctx, filepath.Join(dir, "bench.db"), sqliteclaim.Options{DeleteFinished: !keep})
			return parts{heapindex.New(), s, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }}, err
		}),
		pair(heapMemory, func(_ context.Context, _ *machine, keep bool) (parts, error) {
			return parts{heapindex.New(), memory{claim.NewMemory(claim.MemoryOptions{DeleteFinished: !keep})}, func() error { return nil }}, nil
		}),
	}
}

func onMySQL(kind serverKind) func(ctx context.Context, m *machine, keep bool) (parts, error) {
	return func(ctx context.Context, m *machine, keep bool) (parts, error) {
		idx, free, err := m.redisIndex(ctx)
		if err != nil {
			return parts{}, err
		}
		db, err := m.mysql(ctx, kind, conns)
		if err != nil {
			return parts{}, err
		}
		s, err := mysqlclaim.New(db, mysqlclaim.Options{DeleteFinished: !keep})
		return parts{idx, s, func() error { return errors.Join(db.Close(), free()) }}, err
	}
}

func (m *machine) redisIndex(ctx context.Context) (core.TimeIndex, func() error, error) {
	client, err := m.redis(ctx)
	if err != nil {
		return nil, nil, err
	}
	idx, err := redisindex.New(client, redisindex.Options{})
	return idx, client.Close, err
}

// dueclaimQueue is one producer and one or more schedulers on the same parts.
type dueclaimQueue struct {
	parts
	o        options
	producer *core.Producer
}

func newDueclaim(p parts, o options) (queue, error) {
	producer, err := core.NewProducer(p.index, p.store, core.ProducerOptions{})
	if err != nil {
		return nil, err
	}
	return &dueclaimQueue{parts: p, o: o, producer: producer}, nil
}

func (q *dueclaimQueue) schedule(ctx context.Context, tasks []task) error {
	list := make([]core.Task, len(tasks))
	for i, t := range tasks {
		list[i] = core.Task{ID: core.ID(fmt.Sprintf("task-%09d", t.N)), Kind: "bench", Payload: t.payload(), Due: t.due}
	}
	return q.producer.Schedule(ctx, list...)
}

func (q *dueclaimQueue) work(ctx context.Context, started, finished func(n int)) (func() error, error) {
	var mux core.Mux
	core.Handle(&mux, "bench", func(_ context.Context, _ *core.Job, t task) error {
		started(t.N)
		return nil
	})
	opt := core.Options{
		Slots: slots, Ahead: q.o.ahead,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Observer: core.Observer{Settled: func(_ core.Settlement, err error) {
			if err == nil {
				finished(1)
			}
		}},
	}
	ctx, stop := context.WithCancel(ctx)
	n := max(1, q.o.workers)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		s, err := core.New(q.index, q.store, &mux, opt)
		if err != nil {
			stop()
			return nil, err
		}
		all.Go(func() { errs[i] = s.Run(ctx) })
	}
	return func() error { stop(); all.Wait(); return errors.Join(errs...) }, nil
}

func (q *dueclaimQueue) left(ctx context.Context) (int, error) {
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	rows, err := q.store.Waiting(ctx, far, core.Entry{}, far, 1_000_000) // running ones too: their leases are over by then
	return len(rows), err
}

func (q *dueclaimQueue) close() error { return q.free() }

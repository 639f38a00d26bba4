package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// Names of dueclaim's pairs.
const (
	redisPostgres = "dueclaim redis+postgres"
	redisMariaDB  = "dueclaim redis+mariadb"
	redisMySQL    = "dueclaim redis+mysql"
	heapSQLite    = "dueclaim heap+sqlite"
	heapMemory    = "dueclaim heap+memory"
	heapMemoryRaw = "dueclaim heap+memory, raw payload"
)

// parts are an index and a store for a dueclaim queue.
type parts struct {
	index core.TimeIndex
	store store
	tidy  func(ctx context.Context) error // queue.prepare; may be nil
	free  func() error

	entries func(ctx context.Context) (int, error)     // in the index
	bytes   func(ctx context.Context) (float64, error) // of memory that the index's place uses
	lose    func(ctx context.Context) error            // empties the index
}

type store interface {
	core.Store
	Migrate(ctx context.Context) error
}

// memory has nothing to migrate.
type memory struct{ *claim.Memory }

func (memory) Migrate(context.Context) error { return nil }

var both = []bool{false, true}

func dueclaimSystems() []system {
	pair := func(name string, share float64, open func(ctx context.Context, m *machine, keep bool) (parts, error), servers ...serverKind) system {
		return system{name: name, settings: "Slots 2000, all else as it comes", servers: servers, share: share, keeps: both,
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
	raw := pair(heapMemoryRaw, 6, onMemory)
	raw.raw = true
	raw.settings = "Slots 2000; its handler finds the task's number in the payload's bytes, without decoding them"
	return []system{
		pair(redisPostgres, 1, onPostgres, server.Redis, server.Postgres),
		pair(redisMariaDB, 1, onMySQL(server.MariaDB), server.Redis, server.MariaDB),
		pair(redisMySQL, 0.5, onMySQL(server.MySQL), server.Redis, server.MySQL),
		pair(heapSQLite, 0.6, onSQLite),
		pair(heapMemory, 6, onMemory), raw,
	}
}

func onPostgres(ctx context.Context, m *machine, keep bool) (parts, error) {
	p, err := m.redisIndex(ctx)
	if err != nil {
		return p, err
	}
	pool, free, err := m.postgres(ctx, conns)
	if err != nil {
		return p, errors.Join(err, p.free())
	}
	p.tidy = func(ctx context.Context) error { return tidyPostgres(ctx, pool) }
	return p.with(func() (store, error) { return pgclaim.New(pool, pgclaim.Options{DeleteFinished: !keep}) }, free)
}

func onMySQL(kind serverKind) func(ctx context.Context, m *machine, keep bool) (parts, error) {
	return func(ctx context.Context, m *machine, keep bool) (parts, error) {
		p, err := m.redisIndex(ctx)
		if err != nil {
			return p, err
		}
		db, free, err := m.mysql(ctx, kind, conns)
		if err != nil {
			return p, errors.Join(err, p.free())
		}
		return p.with(func() (store, error) { return mysqlclaim.New(db, mysqlclaim.Options{DeleteFinished: !keep}) }, free)
	}
}

func onSQLite(ctx context.Context, _ *machine, keep bool) (parts, error) {
	dir, err := tempDir()
	if err != nil {
		return parts{}, err
	}
	s, err := sqliteclaim.Open(ctx, filepath.Join(dir, "bench.db"), sqliteclaim.Options{DeleteFinished: !keep})
	if err != nil {
		return parts{}, errors.Join(err, os.RemoveAll(dir))
	}
	p := heapParts()
	return p.with(func() (store, error) { return s, nil }, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) })
}

func onMemory(_ context.Context, _ *machine, keep bool) (parts, error) {
	p := heapParts()
	return p.with(func() (store, error) {
		return memory{claim.NewMemory(claim.MemoryOptions{DeleteFinished: !keep})}, nil
	}, func() error { return nil })
}

// with adds a store, and what frees its place.
func (p parts) with(open func() (store, error), free func() error) (parts, error) {
	index := p.free
	p.free = func() error { return errors.Join(free(), index()) }
	s, err := open()
	if err != nil {
		return p, errors.Join(err, p.free())
	}
	p.store = s
	return p, nil
}

func heapParts() parts {
	idx := heapindex.New()
	return parts{
		index:   idx,
		free:    func() error { return nil },
		entries: func(context.Context) (int, error) { return idx.Len(), nil },
		bytes:   func(context.Context) (float64, error) { return heapBytes(), nil },
	}
}

// heapBytes is what this process's live objects take.
func heapBytes() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func (m *machine) redisIndex(ctx context.Context) (parts, error) {
	client, err := m.redis(ctx)
	if err != nil {
		return parts{}, err
	}
	idx, err := redisindex.New(client, redisindex.Options{})
	if err != nil {
		return parts{}, errors.Join(err, client.Close())
	}
	return parts{
		index: idx,
		free:  client.Close,
		entries: func(ctx context.Context) (int, error) {
			n, err := client.ZCard(ctx, "dueclaim:{default}:due").Result()
			return int(n), err
		},
		bytes: func(ctx context.Context) (float64, error) { return usedMemory(ctx, client) },
		lose:  func(ctx context.Context) error { return client.FlushAll(ctx).Err() },
	}, nil
}

// usedMemory is what a Redis server says that its data takes, in bytes.
func usedMemory(ctx context.Context, client *redis.Client) (float64, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(infoField(info, "used_memory"), 64)
}

// infoField is a field of what Redis's INFO says.
func infoField(info, name string) string {
	for line := range strings.SplitSeq(info, "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return value
		}
	}
	return ""
}

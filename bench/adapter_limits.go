package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
)

// openStore returns a store with as many connections as the plain statements have.
func openStore(ctx context.Context, m *machine, kind serverKind, keep bool) (s store, tidy, free func() error, err error) {
	tidy = func() error { return nil }
	if kind == server.Postgres {
		pool, free, err := m.postgres(ctx, limitConns)
		if err != nil {
			return nil, nil, nil, err
		}
		s, err := pgclaim.New(pool, pgclaim.Options{DeleteFinished: !keep})
		return s, func() error { return tidyPostgres(ctx, pool) }, free, err
	}
	db, free, err := m.mysql(ctx, kind, limitConns)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err = mysqlclaim.New(db, mysqlclaim.Options{DeleteFinished: !keep})
	return s, tidy, free, err
}

// adapterSQL is plainSQL by a store's Insert, Claim and Settle.
func adapterSQL(ctx context.Context, r *round, kind serverKind) error {
	n := r.size.limit
	if kind == server.MySQL {
		n /= 2
	}
	for _, keep := range both {
		if err := adapterSteps(ctx, r, kind, n, keep); err != nil {
			return err
		}
	}
	return nil
}

func adapterSteps(ctx context.Context, r *round, kind serverKind, n int, keep bool) (err error) {
	s, tidy, free, err := openStore(ctx, r.machine, kind, keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	now := core.FloorMilli(time.Now())
	insert := func(ctx context.Context, first, end int) error {
		tasks := make([]core.Task, end-first)
		for i := range tasks {
			tasks[i] = newTask(first+i, now.Add(-time.Second)).core()
		}
		return s.Insert(ctx, core.Call{ID: fmt.Sprintf("call-%d", first), Now: now}, tasks)
	}
	var mu sync.Mutex
	grants := map[int][]core.Settlement{} // by the first of the batch
	claim := func(ctx context.Context, first, end int) error {
		ids := make([]core.ID, end-first)
		for i := range ids {
			ids[i] = taskID(first + i)
		}
		claimed, err := s.Claim(ctx, ids, core.Lease{Holder: fmt.Sprintf("bench-%d", first), Now: now.Add(-grace), DueBy: now, Until: now.Add(5 * time.Minute)})
		if err != nil {
			return err
		}
		list := make([]core.Settlement, 0, len(claimed))
		for _, c := range claimed {
			if c.Verdict == core.Granted {
				list = append(list, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
		}
		mu.Lock()
		defer mu.Unlock()
		grants[first] = list
		return expectRows(len(list), end-first)
	}
	settle := func(ctx context.Context, first, _ int) error {
		mu.Lock()
		list := grants[first]
		mu.Unlock()
		return s.Settle(ctx, now, list)
	}
	name := adapterOn(kind)
	if keep { // inserting and claiming is the same in both ways, and measured once
		err = inBatches(ctx, limitConns, n, insertBatch, insert)
	} else {
		err = timed(ctx, r, stepInsert, name, n, insertBatch, insert)
	}
	if err = errors.Join(err, tidy()); err != nil {
		return err
	}
	step := stepDelete
	if keep {
		step = stepUpdate
		err = inBatches(ctx, limitConns, n, claimBatch, claim)
	} else {
		err = timed(ctx, r, stepClaim, name, n, claimBatch, claim)
	}
	if err != nil {
		return err
	}
	return timed(ctx, r, step, name, n, claimBatch, settle)
}

// plainTake moves the members up to a score to another one and returns them.
var plainTake = redis.NewScript(`
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(due) do redis.call('ZADD', KEYS[1], ARGV[2], id) end
return due`)

func (m *machine) limitedRedis(ctx context.Context) (*redis.Client, error) {
	s, err := m.server(server.Redis)
	if err != nil {
		return nil, err
	}
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: limitConns})
	return c, c.FlushAll(ctx).Err()
}

func plainRedis(ctx context.Context, r *round, kind serverKind) (err error) {
	c, err := r.machine.limitedRedis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	const key = "raw"
	now := time.Now().UnixMilli()
	n, name := r.size.limit, plainOn(kind)
	return errors.Join(
		timed(ctx, r, stepAdd, name, n, redisBatch, func(ctx context.Context, first, end int) error {
			list := make([]redis.Z, end-first)
			for i, id := range rawIDs(first, end) {
				list[i] = redis.Z{Score: float64(now - int64(n) + int64(first+i)), Member: id}
			}
			return c.ZAdd(ctx, key, list...).Err()
		}),
		timed(ctx, r, stepTake, name, n, redisBatch, func(ctx context.Context, first, end int) error {
			taken, err := plainTake.Run(ctx, c, []string{key}, now, now+30_000, end-first).StringSlice()
			return errors.Join(err, expectRows(len(taken), end-first))
		}),
		timed(ctx, r, stepRemove, name, n, redisBatch, func(ctx context.Context, first, end int) error {
			list := make([]any, end-first)
			for i, id := range rawIDs(first, end) {
				list[i] = id
			}
			gone, err := c.ZRem(ctx, key, list...).Result()
			return errors.Join(err, expectRows(int(gone), end-first))
		}))
}

func adapterRedis(ctx context.Context, r *round, kind serverKind) (err error) {
	c, err := r.machine.limitedRedis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	idx, err := redisindex.New(c, redisindex.Options{})
	if err != nil {
		return err
	}
	now := core.FloorMilli(time.Now())
	until := now.Add(30 * time.Second)
	n, name := r.size.limit, adapterOn(kind)
	entries := func(first, end int, due func(i int) time.Time) []core.Entry {
		list := make([]core.Entry, end-first)
		for i := range list {
			list[i] = core.Entry{ID: taskID(first + i), Due: due(first + i)}
		}
		return list
	}
	return errors.Join(
		timed(ctx, r, stepAdd, name, n, redisBatch, func(ctx context.Context, first, end int) error {
			return idx.Add(ctx, entries(first, end, func(i int) time.Time { return now.Add(time.Duration(i-n) * time.Millisecond) }))
		}),
		timed(ctx, r, stepTake, name, n, redisBatch, func(ctx context.Context, first, end int) error {
			taken, _, err := idx.Take(ctx, now, until, end-first)
			return errors.Join(err, expectRows(len(taken), end-first))
		}),
		timed(ctx, r, stepRemove, name, n, redisBatch, func(ctx context.Context, first, end int) error {
			return idx.Remove(ctx, entries(first, end, func(int) time.Time { return until }))
		}))
}

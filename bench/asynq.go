package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// Names of asynq's set-ups.
const (
	asynqBest  = "asynq"
	asynqPlain = "asynq, as it comes"
)

func asynqSystems() []system {
	set := func(name, how string, share float64, c asynq.Config) system {
		return system{name: name, settings: how, servers: []serverKind{server.Redis}, share: share,
			peer: true, plain: name == asynqPlain, keeps: both, oneOnly: true,
			open: func(ctx context.Context, m *machine, o options) (queue, error) {
				return openAsynq(ctx, m, o, c)
			}}
	}
	return []system{
		set(asynqBest, "Concurrency 2000, TaskCheckInterval 10 ms, DelayedTaskCheckInterval 50 ms", 0.4, asynq.Config{
			Concurrency: slots, TaskCheckInterval: 10 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond,
		}),
		set(asynqPlain, "Concurrency as many as there are cores, TaskCheckInterval 1 s, DelayedTaskCheckInterval 5 s", 0.2, asynq.Config{}),
	}
}

// asynqQueue is a client and one or more servers, as asynq calls its workers.
type asynqQueue struct {
	redis  *redis.Client // for the harness's own questions
	at     asynq.RedisClientOpt
	client *asynq.Client
	o      options
	config asynq.Config
}

func openAsynq(ctx context.Context, m *machine, o options, c asynq.Config) (queue, error) {
	client, err := m.redis(ctx)
	if err != nil {
		return nil, err
	}
	at := asynq.RedisClientOpt{Addr: client.Options().Addr, PoolSize: redisConns}
	c.LogLevel = asynq.ErrorLevel
	c.ShutdownTimeout = stopTimeout
	return &asynqQueue{redis: client, at: at, client: asynq.NewClient(at), o: o, config: c}, nil
}

// asynqProducers are the calls that one call of schedule makes at a time: asynq has
// none for several tasks.
const asynqProducers = 16

func (q *asynqQueue) schedule(ctx context.Context, tasks []task) error {
	var all sync.WaitGroup
	errs := make([]error, min(asynqProducers, len(tasks)))
	for p := range errs {
		all.Go(func() {
			for i := p; i < len(tasks) && errs[p] == nil; i += len(errs) {
				errs[p] = q.one(ctx, tasks[i])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (q *asynqQueue) one(ctx context.Context, t task) error {
	opts := []asynq.Option{asynq.ProcessAt(t.due)}
	if q.o.keep {
		opts = append(opts, asynq.Retention(24*time.Hour))
	}
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask("bench", t.payload()), opts...)
	return err
}

func (q *asynqQueue) prepare(context.Context) error { return nil }

// work takes a task for finished at its handler's end, which is before asynq has
// recorded it: asynq doesn't tell when it has.
func (q *asynqQueue) work(_ context.Context, started, finished func(n int)) (func() error, error) {
	handler := asynq.HandlerFunc(func(_ context.Context, at *asynq.Task) error {
		var t task
		if err := json.Unmarshal(at.Payload(), &t); err != nil {
			return fmt.Errorf("asynq: payload: %w", err)
		}
		started(t.N)
		finished(1)
		return nil
	})
	var servers []*asynq.Server
	stop := func() error {
		var all sync.WaitGroup
		for _, s := range servers {
			all.Go(s.Shutdown)
		}
		all.Wait()
		return nil
	}
	for range max(1, q.o.workers) {
		s := asynq.NewServer(q.at, q.config)
		if err := s.Start(handler); err != nil {
			return nil, errors.Join(err, stop())
		}
		servers = append(servers, s)
	}
	return stop, nil
}

func (q *asynqQueue) left(context.Context) (int, error) {
	inspector := asynq.NewInspector(q.at)
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err != nil {
		return 0, fmt.Errorf("asynq: count: %w", err)
	}
	// Not info.Size, which may count those that are kept.
	return info.Pending + info.Active + info.Scheduled + info.Retry + info.Archived + info.Aggregating, nil
}

func (q *asynqQueue) close() error {
	return errors.Join(q.client.Close(), q.redis.Close())
}

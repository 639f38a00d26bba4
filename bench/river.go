package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// Names of River's set-ups.
const (
	riverBest  = "river"
	riverPlain = "river, as it comes"
)

// Kind makes a task River's job arguments.
func (task) Kind() string { return "bench" }

// riverSystems: River's own benchmark works with 2,000 workers and short fetch
// intervals; its documentation's examples with 100 workers and the defaults.
func riverSystems() []system {
	set := func(name, how string, share float64, c river.Config) system {
		return system{name: name, settings: how, servers: []serverKind{server.Postgres}, share: share,
			peer: true, plain: name == riverPlain,
			keeps: []bool{true}, // finished jobs are deleted by age only
			open: func(ctx context.Context, m *machine, o options) (queue, error) {
				return openRiver(ctx, m, o, c)
			}}
	}
	return []system{
		set(riverBest, "MaxWorkers 2000, FetchCooldown 2 ms, FetchPollInterval 20 ms, as in its own benchmark; batches by InsertManyFast", 1, river.Config{
			FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}},
		}),
		set(riverPlain, "MaxWorkers 100 as in its documentation's examples, FetchCooldown 100 ms, FetchPollInterval 1 s", 0.1, river.Config{
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		}),
	}
}

// riverQueue is a client that inserts and one or more that work.
type riverQueue struct {
	pool     *pgxpool.Pool
	free     func() error
	o        options
	config   river.Config
	producer *river.Client[pgx.Tx]
}

func openRiver(ctx context.Context, m *machine, o options, c river.Config) (_ queue, err error) {
	pool, free, err := m.postgres(ctx, conns)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, free())
		}
	}()
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	c.Logger = quiet
	producer, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	return &riverQueue{pool: pool, free: free, o: o, config: c, producer: producer}, nil
}

func (q *riverQueue) schedule(ctx context.Context, tasks []task) error {
	if len(tasks) == 1 {
		_, err := q.producer.Insert(ctx, tasks[0], scheduledAt(tasks[0]))
		return err
	}
	list := make([]river.InsertManyParams, len(tasks))
	for i, t := range tasks {
		list[i] = river.InsertManyParams{Args: t, InsertOpts: scheduledAt(t)}
	}
	_, err := q.producer.InsertManyFast(ctx, list)
	return err
}

// scheduledAt leaves out a time that is past: with one, even then, River's leader would
// have to make the job available first.
func scheduledAt(t task) *river.InsertOpts {
	if t.due.Before(time.Now()) {
		return nil
	}
	return &river.InsertOpts{ScheduledAt: t.due}
}

func (q *riverQueue) prepare(ctx context.Context) error { return tidyPostgres(ctx, q.pool) }

// riverWorker is the handler.
type riverWorker struct {
	river.WorkerDefaults[task]
	started func(n int)
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[task]) error {
	w.started(job.Args.N)
	return nil
}

// stopTimeout bounds the end of a peer's workers.
const stopTimeout = 30 * time.Second

func (q *riverQueue) work(ctx context.Context, started, finished func(n int)) (func() error, error) {
	var stops []func() error
	stop := func() error {
		errs := make([]error, len(stops))
		var all sync.WaitGroup
		for i := range stops {
			all.Go(func() { errs[i] = stops[i]() })
		}
		all.Wait()
		return errors.Join(errs...)
	}
	for range max(1, q.o.workers) {
		one, err := q.client(ctx, started, finished)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		stops = append(stops, one)
	}
	return stop, nil
}

// client starts one worker process's part. A job is finished when River's
// subscription says so, which is after its row was changed, as in River's benchmark.
func (q *riverQueue) client(ctx context.Context, started, finished func(n int)) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{started: started})
	c := q.config
	c.Workers = workers
	client, err := river.NewClient(riverpgxv5.New(q.pool), &c)
	if err != nil {
		return nil, err
	}
	// Events that overflow the channel would be lost.
	events, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 200_000, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	var listening sync.WaitGroup
	listening.Go(func() {
		for range events {
			finished(1)
		}
	})
	// Not the run's ctx: its end would not wait for the jobs that run.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		cancel()
		listening.Wait()
		return nil, err
	}
	return func() error {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		err := client.Stop(ctx)
		cancel() // closes the channel
		listening.Wait()
		return err
	}, nil
}

func (q *riverQueue) left(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&n)
	if err != nil {
		err = fmt.Errorf("river: count: %w", err)
	}
	return n, err
}

func (q *riverQueue) close() error { return q.free() }

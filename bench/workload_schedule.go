package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Producers of the schedule workload.
const (
	singleProducers = 64
	batchProducers  = 4
)

// scheduleWorkload: tasks due in an hour are scheduled as fast as can be, with no
// worker running.
func scheduleWorkload() workload {
	type kase struct {
		name             string
		producers, batch int
	}
	return workload{
		name: "schedule",
		sizes: func(s sizes) string {
			return fmt.Sprintf("%d tasks one a call by %d producers, %d in batches by %d", s.single, singleProducers, s.batches, batchProducers)
		},
		run: func(ctx context.Context, r *round) error {
			for _, c := range []kase{{"1", singleProducers, 1}, {"100", batchProducers, 100}, {"1000", batchProducers, 1000}} {
				for _, s := range r.turns(systems()) {
					n := r.size.batches
					switch {
					case s.plain, s.raw, c.batch > 1 && s.oneOnly:
						continue // the settings are the workers'; asynq has no such call
					case c.batch == 1 && (s.name == riverBest || s.name == redisMySQL):
						n = r.size.single / 4
					case c.batch == 1:
						n = r.size.single
					}
					d, err := produce(ctx, r.machine, s, n, c.producers, c.batch)
					if err != nil {
						return failed(c.name, s, err)
					}
					r.record(c.name, s.name, d.metrics())
				}
			}
			return nil
		},
	}
}

// produce takes the time until n tasks are scheduled.
func produce(ctx context.Context, m *machine, s system, n, producers, batch int) (d drained, err error) {
	q, err := s.start(ctx, m, options{})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	due := time.Now().Add(time.Hour)
	before, began := m.cpu(s), time.Now()
	err = inBatches(ctx, producers, n, batch, func(ctx context.Context, first, end int) error {
		return q.schedule(ctx, newTasks(first, end, due))
	})
	d = drained{n: n, took: time.Since(began), cpu: m.cpu(s).sub(before)}
	if err != nil {
		return d, err
	}
	return d, expectLeft(ctx, q, n)
}

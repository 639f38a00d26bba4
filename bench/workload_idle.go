package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// idleWorkload: what workers with nothing to do ask of their servers.
func idleWorkload() workload {
	return workload{
		name:   "idle",
		rounds: func(sizes) int { return 2 },
		sizes:  func(s sizes) string { return fmt.Sprintf("%v, after %v for starting", s.idle, settleIn(s)) },
		run: func(ctx context.Context, r *round) error {
			for _, s := range r.turns(named(systems(), redisPostgres, redisMariaDB, riverBest, riverPlain, asynqBest, asynqPlain)) {
				metrics, err := idle(ctx, r.machine, s, r.size)
				if err != nil {
					return failed("idle", s, err)
				}
				r.record("idle", s.name, metrics)
			}
			return nil
		},
	}
}

// settleIn is how long workers run before the measurement.
func settleIn(s sizes) time.Duration { return s.idle / 5 }

func idle(ctx context.Context, m *machine, s system, size sizes) (metrics map[string]float64, err error) {
	q, err := s.start(ctx, m, options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	stop, err := q.work(ctx, func(int) {}, func(int) {})
	if err != nil {
		return nil, err
	}
	metrics, err = idling(ctx, m, s, size)
	return metrics, errors.Join(err, stop())
}

func idling(ctx context.Context, m *machine, s system, size sizes) (map[string]float64, error) {
	if err := sleep(ctx, settleIn(size)); err != nil {
		return nil, err
	}
	asked, err := m.questions(ctx, s)
	if err != nil {
		return nil, err
	}
	before, began := m.cpu(s), time.Now()
	if err := sleep(ctx, size.idle); err != nil {
		return nil, err
	}
	used, seconds := m.cpu(s).sub(before), time.Since(began).Seconds()
	now, err := m.questions(ctx, s)
	if err != nil {
		return nil, err
	}
	// In thousandths of a core.
	metrics := map[string]float64{"cpu client": 1000 * used.client / seconds}
	total := used.client
	for kind, n := range now {
		metrics["queries "+string(kind)] = float64(n-asked[kind]) / seconds
		metrics["cpu "+string(kind)] = 1000 * used.servers[kind] / seconds
		total += used.servers[kind]
	}
	metrics["cpu"] = 1000 * total / seconds
	return metrics, nil
}

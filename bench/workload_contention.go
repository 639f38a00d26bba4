package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// running marks the cases in which the schedulers run already.
const running = "running "

// contentionWorkload: several schedulers on the same queue, all in this process,
// with pools of connections that they share. dueclaim is measured as well with
// schedulers that run already when the tasks become due, without what starting costs.
func contentionWorkload() workload {
	return workload{
		name:   "contention",
		rounds: func(sizes) int { return 2 }, // eight times as many runs as others have
		sizes: func(s sizes) string {
			return fmt.Sprintf("%d tasks; %s schedulers, each with 2,000 slots of its own", s.contention, list(s.schedulers))
		},
		run: func(ctx context.Context, r *round) error {
			for _, workers := range r.size.schedulers {
				for _, s := range r.turns(named(systems(), redisPostgres, redisMariaDB, riverBest, asynqBest)) {
					if err := contend(ctx, r, s, fmt.Sprint(workers), workers, drain); err != nil {
						return err
					}
					if s.peer {
						continue
					}
					s.ahead = -1 // the clock starts at the due time
					if err := contend(ctx, r, s, running+fmt.Sprint(workers), workers, drainRunning); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// contend measures one system with so many schedulers.
func contend(ctx context.Context, r *round, s system, kase string, workers int,
	run func(ctx context.Context, m *machine, s system, o options, n int) (drained, error)) error {
	var granted, refused atomic.Int64
	o := options{keep: s.keeps[0], workers: workers, claimed: func(g, n int) {
		granted.Add(int64(g))
		refused.Add(int64(n))
	}}
	d, err := run(ctx, r.machine, s, o, s.of(r.size.contention))
	if err != nil {
		return failed(kase, s, err)
	}
	metrics := d.metrics()
	if all := granted.Load() + refused.Load(); all > 0 {
		metrics["wasted"] = 100 * float64(refused.Load()) / float64(all)
	}
	r.record(kase, s.name, metrics)
	return nil
}

// runningIn is from the beginning of the scheduling to the due time, room for the
// scheduling of tens of thousands.
const runningIn = 5 * time.Second

// drainRunning is drain with schedulers that run already: the tasks are due at one
// instant, from which on time and processor time are taken.
func drainRunning(ctx context.Context, m *machine, s system, o options, n int) (d drained, err error) {
	q, err := s.start(ctx, m, o)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	ran := newOnce(0, n)
	all := newCountdown(n)
	stop, err := q.work(ctx, ran.mark, all.done)
	if err != nil {
		return d, err
	}
	d, err = fromDue(ctx, m, s, q, n, all)
	if err = errors.Join(err, stop(), ran.check()); err != nil {
		return d, err
	}
	return d, expectLeft(ctx, q, 0)
}

func fromDue(ctx context.Context, m *machine, s system, q queue, n int, all *countdown) (d drained, err error) {
	at := time.Now().Add(runningIn)
	if err := fill(ctx, q, 0, n, at); err != nil {
		return d, err
	}
	if time.Until(at) <= 0 {
		return d, errors.New("the tasks could not be scheduled before they were due")
	}
	if err := sleep(ctx, time.Until(at)); err != nil {
		return d, err
	}
	before, began := m.cpu(s), time.Now()
	err = all.wait(ctx, patience)
	return drained{n: n, took: time.Since(began), cpu: m.cpu(s).sub(before)}, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/bench/figures"
)

const (
	caseHerd = "herd"
	notAhead = ", not ahead"
)

// herdFraction is where in its second the herd is due. asynq keeps due times in
// whole seconds: any fraction makes it early by so much.
const herdFraction = 300 * time.Millisecond

// latenessWorkload: start minus due time, of tasks due at a steady rate, each
// scheduled some time ahead, and of many that are due at once.
func latenessWorkload() workload {
	return workload{
		name: "lateness",
		sizes: func(s sizes) string {
			return fmt.Sprintf("%v each at %s tasks a second, scheduled %v before they are due; a herd of %d, scheduled from %v before on", s.steady, list(s.rates), s.ahead, s.herd, s.herdIn)
		},
		run: func(ctx context.Context, r *round) error {
			for _, rate := range r.size.rates {
				for _, s := range r.turns(punctual(rate == r.size.rates[0])) {
					kase := fmt.Sprint(rate)
					l, err := steady(ctx, r.machine, s, r.size, rate)
					if err != nil {
						return failed(kase, s, err)
					}
					r.record(kase, s.name, l.metrics())
				}
			}
			for _, s := range r.turns(punctual(false)) {
				l, err := herd(ctx, r.machine, s, r.size)
				if err != nil {
					return failed(caseHerd, s, err)
				}
				r.record(caseHerd, s.name, l.metrics())
			}
			return nil
		},
	}
}

// punctual are the systems of this workload: dueclaim with and without claiming
// ahead, and the peers; those as they come where the rate is one that they reach.
func punctual(slow bool) []system {
	var list []system
	for _, s := range named(dueclaimSystems(), redisPostgres, redisMariaDB) {
		without := s
		without.name += notAhead
		without.ahead = -1
		list = append(list, s, without)
	}
	list = append(list, named(systems(), riverBest, asynqBest)...)
	if slow {
		list = append(list, named(systems(), riverPlain, asynqPlain)...)
	}
	return list
}

// lateness is one run's: start minus due time of each task, in milliseconds.
type lateness struct {
	late []float64
	cpu  float64 // microseconds a task, scheduling included
	lag  float64 // how long after its time the last scheduling call returned, at most, in milliseconds
}

func (l lateness) metrics() map[string]float64 {
	slices.Sort(l.late)
	early := 0
	for early < len(l.late) && l.late[early] < 0 {
		early++
	}
	m := map[string]float64{
		"p50": figures.Percentile(l.late, 50), "p99": figures.Percentile(l.late, 99), "max": l.late[len(l.late)-1],
		"early": float64(early), "least": l.late[0], "cpu": l.cpu,
	}
	if l.lag > 0 {
		m["scheduled late by"] = l.lag
	}
	return m
}

// punctually runs a queue's workers, lets produce schedule n tasks, and gathers how
// late each one started. produce returns their due times.
func punctually(ctx context.Context, m *machine, s system, size sizes, n int,
	produce func(ctx context.Context, q queue, due []time.Time) (lag time.Duration, err error)) (l lateness, err error) {
	q, err := s.start(ctx, m, options{})
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	ran := newOnce(0, n)
	all := newCountdown(n)
	started := make([]time.Time, n)
	stop, err := q.work(ctx, func(i int) {
		started[i] = time.Now()
		ran.mark(i)
	}, all.done)
	if err != nil {
		return l, err
	}
	due := make([]time.Time, n)
	var lag time.Duration
	var before, used cpuTime
	err = sleep(ctx, size.leadIn)
	if err == nil {
		before = m.cpu(s)
		lag, err = produce(ctx, q, due)
	}
	if err == nil {
		err = all.wait(ctx, patience)
		used = m.cpu(s).sub(before)
	}
	// Whoever started a task has ended by the time stop returns.
	if err = errors.Join(err, stop()); err != nil {
		return l, err
	}
	if err = errors.Join(ran.check(), expectLeft(ctx, q, 0)); err != nil {
		return l, err
	}
	l.late = make([]float64, n)
	for i := range l.late {
		// Both read the same process's clock; without their monotonic parts, as a due
		// time has none.
		l.late[i] = float64(started[i].Round(0).Sub(due[i])) / float64(time.Millisecond)
	}
	l.cpu = used.total() * 1e6 / float64(n)
	l.lag = float64(lag) / float64(time.Millisecond)
	return l, nil
}

// steady schedules tasks evenly, each the same time before it is due.
func steady(ctx context.Context, m *machine, s system, size sizes, rate int) (lateness, error) {
	n := int(size.steady.Seconds() * float64(rate))
	return punctually(ctx, m, s, size, n, func(ctx context.Context, q queue, due []time.Time) (time.Duration, error) {
		return atRate(ctx, q, due, rate, size.ahead)
	})
}

// herd schedules tasks that are due at one instant.
func herd(ctx context.Context, m *machine, s system, size sizes) (lateness, error) {
	return punctually(ctx, m, s, size, size.herd, func(ctx context.Context, q queue, due []time.Time) (time.Duration, error) {
		at := time.Now().Round(0).Add(size.herdIn).Truncate(time.Second).Add(herdFraction)
		for i := range due {
			due[i] = at
		}
		err := fill(ctx, q, 0, len(due), at)
		if err == nil && time.Until(at) < 500*time.Millisecond {
			err = errors.New("the herd could not be scheduled before it was due")
		}
		return 0, err
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

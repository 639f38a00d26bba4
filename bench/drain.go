package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a run may take until it is given up.
const patience = 5 * time.Minute

// drained is one measured run.
type drained struct {
	n    int
	took time.Duration
	cpu  cpuTime
}

func (d drained) rate() float64 { return float64(d.n) / d.took.Seconds() }

// perTask is processor time a task, in microseconds.
func (d drained) perTask(seconds float64) float64 { return seconds * 1e6 / float64(d.n) }

// drain puts n due tasks into a queue, starts its workers, and takes the time until
// all results are recorded.
func drain(ctx context.Context, m *machine, s system, o options, n int) (d drained, err error) {
	q, err := s.start(ctx, m, o)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	if d, err = burst(ctx, m, s, q, 0, n); err != nil {
		return d, err
	}
	return d, expectLeft(ctx, q, 0)
}

// burst is drain on a queue that may hold other tasks, which are due much later.
// The new ones are numbered from..from+n-1.
func burst(ctx context.Context, m *machine, s system, q queue, from, n int) (d drained, err error) {
	if err := fill(ctx, q, from, n, time.Now().Add(-time.Second)); err != nil {
		return d, err
	}
	if err := q.prepare(ctx); err != nil {
		return d, err
	}
	ran := newOnce(from, n)
	all := newCountdown(n)
	before, began := m.cpu(s), time.Now()
	stop, err := q.work(ctx, ran.mark, all.done)
	if err != nil {
		return d, err
	}
	err = all.wait(ctx, patience)
	d = drained{n: n, took: time.Since(began), cpu: m.cpu(s).sub(before)}
	return d, errors.Join(err, stop(), ran.check())
}

// expectLeft fails unless so many tasks are unfinished by the queue's own books.
func expectLeft(ctx context.Context, q queue, want int) error {
	left, err := q.left(ctx)
	if err == nil && left != want {
		err = fmt.Errorf("%d tasks are left, want %d", left, want)
	}
	return err
}

// fill schedules the tasks from..from+n-1 for one instant, 1,000 a call, four calls
// at a time.
func fill(ctx context.Context, q queue, from, n int, due time.Time) error {
	return fillFrom(ctx, q, from, n, due, 0)
}

// fillFrom is fill with due times that are step apart, from due on.
func fillFrom(ctx context.Context, q queue, from, n int, due time.Time, step time.Duration) error {
	return inBatches(ctx, 4, n, 1000, func(ctx context.Context, first, end int) error {
		tasks := newTasks(from+first, from+end, due)
		for i := range tasks {
			tasks[i].due = due.Add(time.Duration(first+i) * step).Truncate(time.Millisecond)
		}
		return q.schedule(ctx, tasks)
	})
}

func newTasks(from, end int, due time.Time) []task {
	tasks := make([]task, end-from)
	for k := range tasks {
		tasks[k] = newTask(from+k, due)
	}
	return tasks
}

// inBatches calls f for 0..n-1 in batches, from several goroutines, and returns
// their errors once all have ended; the first one ends all.
func inBatches(ctx context.Context, goroutines, n, batch int, f func(ctx context.Context, first, end int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, goroutines)
	for i := range errs {
		all.Go(func() {
			for ctx.Err() == nil {
				first := int(next.Add(int64(batch))) - batch
				if first >= n {
					return
				}
				if errs[i] = f(ctx, first, min(first+batch, n)); errs[i] != nil {
					cancel()
					return
				}
			}
			errs[i] = ctx.Err()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// countdown waits for n results.
type countdown struct {
	left atomic.Int64
	zero chan struct{}
}

func newCountdown(n int) *countdown {
	c := &countdown{zero: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

func (c *countdown) done(k int) {
	if c.left.Add(-int64(k)) == 0 {
		close(c.zero)
	}
}

func (c *countdown) wait(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.zero:
		return nil
	case <-timer.C:
		return fmt.Errorf("%d tasks are not done after %v", c.left.Load(), limit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// once counts how often each of the tasks from.. ran.
type once struct {
	from int
	runs []atomic.Int32
}

func newOnce(from, n int) *once { return &once{from: from, runs: make([]atomic.Int32, n)} }

func (o *once) mark(n int) { o.runs[n-o.from].Add(1) }

// check says which tasks didn't run, or ran twice.
func (o *once) check() error {
	never, twice := 0, 0
	for i := range o.runs {
		switch o.runs[i].Load() {
		case 0:
			never++
		case 1:
		default:
			twice++
		}
	}
	if never+twice > 0 {
		return fmt.Errorf("%d tasks never ran, %d ran more than once", never, twice)
	}
	return nil
}

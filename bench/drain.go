package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

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
	q, err := s.open(ctx, m, o)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	if err := fill(ctx, q, 0, n, time.Now().Add(-time.Second)); err != nil {
		return d, err
	}
	ran := newOnce(n)
	var done atomic.Int64
	all := make(chan struct{})
	before, began := m.cpu(), time.Now()
	stop, err := q.work(ctx, ran.mark, func(k int) {
		if done.Add(int64(k)) == int64(n) {
			close(all)
		}
	})
	if err != nil {
		return d, err
	}
	select {
	case <-all:
	case <-time.After(5 * time.Minute):
		err = fmt.Errorf("%s: %d of %d done after 5 minutes", s.name, done.Load(), n)
	case <-ctx.Done():
		err = ctx.Err()
	}
	d = drained{n: n, took: time.Since(began), cpu: m.cpu().sub(before)}
	if err = errors.Join(err, stop()); err != nil {
		return d, err
	}
	left, err := q.left(ctx)
	if err == nil && left != 0 {
		err = fmt.Errorf("%s: %d tasks are left", s.name, left)
	}
	return d, errors.Join(err, ran.check())
}

// fill schedules the tasks from..from+n-1, 1,000 a call, four calls at a time.
func fill(ctx context.Context, q queue, from, n int, due time.Time) error {
	const batch = 1000
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			for {
				first := int(next.Add(batch)) - batch
				if first >= n {
					return
				}
				tasks := make([]task, min(batch, n-first))
				for k := range tasks {
					tasks[k] = newTask(from+first+k, due)
				}
				if errs[i] = q.schedule(ctx, tasks); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// once counts how often each task ran.
type once struct{ runs []atomic.Int32 }

func newOnce(n int) *once { return &once{runs: make([]atomic.Int32, n)} }

func (o *once) mark(n int) { o.runs[n].Add(1) }

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

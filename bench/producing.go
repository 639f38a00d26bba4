package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// tick is how often a steady producer schedules what is due to be scheduled.
	tick = 10 * time.Millisecond
	// tickers are the calls of a steady producer that may be under way at once.
	tickers = 8
)

// atRate schedules len(due) tasks at a steady rate, those of each tick in one call,
// each ahead of its due time, which it notes in due. lag is how long after their
// time a call for tasks returned, at most.
func atRate(ctx context.Context, q queue, due []time.Time, rate int, ahead time.Duration) (lag time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	base := began.Round(0).Add(ahead)
	for i := range due {
		due[i] = base.Add(time.Duration(i) * time.Second / time.Duration(rate)).Truncate(time.Millisecond)
	}
	type span struct{ first, end int }
	spans := make(chan span)
	lags := make([]time.Duration, tickers)
	errs := make([]error, tickers)
	var all sync.WaitGroup
	for k := range tickers {
		all.Go(func() {
			for s := range spans {
				tasks := make([]task, s.end-s.first)
				for i := range tasks {
					tasks[i] = newTask(s.first+i, due[s.first+i])
				}
				if err := q.schedule(ctx, tasks); err != nil {
					errs[k] = err
					cancel()
					return
				}
				// The span's first task should have been scheduled so long before it is due.
				lags[k] = max(lags[k], time.Since(due[s.first].Add(-ahead)))
			}
		})
	}
	for first := 0; first < len(due) && ctx.Err() == nil; {
		end := min(len(due), int(time.Since(began).Seconds()*float64(rate))+1)
		if end > first {
			select {
			case spans <- span{first, end}:
				first = end
			case <-ctx.Done():
			}
		}
		if first < len(due) && sleep(ctx, tick) != nil {
			break
		}
	}
	close(spans)
	all.Wait()
	for _, l := range lags {
		lag = max(lag, l)
	}
	return lag, errors.Join(errors.Join(errs...), context.Cause(ctx))
}

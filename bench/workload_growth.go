package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/heapindex"
)

// heapAlone is the system of the in-process index without a store.
const heapAlone = "dueclaim heapindex alone"

// growthWorkload: the cost of a due task while others, due in a day or later, a
// millisecond apart, are pending.
//
// For dueclaim it is that of the steps which touch a task (take, claim, settle,
// remove), by its adapters; a scheduler that starts reads all pending tasks once,
// which would be in the figure otherwise, and is measured as the rebuild. For the
// peers it is that of a drain, as their steps can't be had alone.
func growthWorkload() workload {
	return workload{
		name:   "growth",
		rounds: func(sizes) int { return 1 }, // repeated inside, as filling takes most of the time
		sizes: func(s sizes) string {
			return fmt.Sprintf("%d due tasks, %d times, at %s pending ones (peers up to %d); ids in the order of scheduling", s.head, s.headRepeat, list(s.pending), s.morePeers)
		},
		run: func(ctx context.Context, r *round) error {
			for _, s := range r.turns(named(systems(), redisPostgres, redisMariaDB, riverBest, asynqBest)) {
				if err := grow(ctx, r, s); err != nil {
					return failed("growth", s, err)
				}
			}
			if !r.only.MatchString(heapAlone) {
				return nil
			}
			return growHeap(ctx, r)
		},
	}
}

// grow fills one queue step by step and measures at each.
func grow(ctx context.Context, r *round, s system) (err error) {
	q, err := s.start(ctx, r.machine, options{keep: s.keeps[0]})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	ours, _ := q.(*dueclaimQueue)
	memory, err := r.redisBytes(ctx, q)
	if err != nil {
		return err
	}
	pending := 0
	next := 500_000_000 // numbers of the due ones, above those of all pending ones
	for _, want := range r.size.pending {
		if s.peer && want > r.size.morePeers {
			break
		}
		r.say(r.workload, "%s: filling to %d pending", s.name, want)
		if err := fillFrom(ctx, q, pending, want-pending, time.Now().Add(24*time.Hour+time.Duration(pending)*time.Millisecond), time.Millisecond); err != nil {
			return err
		}
		pending = want
		kase := fmt.Sprint(want)
		if full, err := r.redisBytes(ctx, q); err != nil {
			return err
		} else if full > 0 {
			r.record(kase, s.name, map[string]float64{"bytes": (full - memory) / float64(want)})
		}
		for range r.size.headRepeat {
			var d drained
			if ours != nil {
				d, err = cycles(ctx, r.machine, s, ours, next, r.size.head)
			} else {
				d, err = burst(ctx, r.machine, s, q, next, s.of(r.size.head))
			}
			if err != nil {
				return err
			}
			next += r.size.head
			r.record(kase, s.name, d.metrics())
		}
		if ours == nil {
			if err := expectLeft(ctx, q, pending); err != nil {
				return err
			}
			continue
		}
		if want <= r.size.rebuild {
			took, err := rebuild(ctx, ours, want)
			if err != nil {
				return err
			}
			r.record(kase, s.name, map[string]float64{"rebuild": took.Seconds()})
		}
	}
	return nil
}

// redisBytes is what Redis uses, 0 where the queue has none.
func (r *round) redisBytes(ctx context.Context, q queue) (float64, error) {
	switch q := q.(type) {
	case *dueclaimQueue:
		return q.bytes(ctx)
	case *asynqQueue:
		return usedMemory(ctx, q.redis)
	}
	return 0, nil
}

// rebuild empties the index and takes the time until a scheduler has filled it
// again from the store.
func rebuild(ctx context.Context, q *dueclaimQueue, want int) (took time.Duration, err error) {
	if err := q.prepare(ctx); err != nil {
		return 0, err
	}
	if err := q.lose(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	stop, err := q.work(ctx, func(int) {}, func(int) {})
	if err != nil {
		return 0, err
	}
	for err == nil {
		var n int
		if n, err = q.entries(ctx); n >= want {
			break
		}
		if time.Since(began) > 4*patience {
			err = fmt.Errorf("the index has %d of %d entries after %v", n, want, 4*patience)
		}
		err = errors.Join(err, sleep(ctx, 20*time.Millisecond))
	}
	return time.Since(began), errors.Join(err, stop())
}

// growHeap measures the index in the process alone, in one goroutine: as many
// entries stay in it, of random due times; the earliest are taken and removed, and
// as many added, 500 a call.
func growHeap(ctx context.Context, r *round) error {
	const batch = 500
	for _, n := range r.size.heap {
		churn := newChurn(n, batch)
		before := heapBytes()
		idx := heapindex.New()
		if err := churn.fill(ctx, idx, n); err != nil {
			return err
		}
		bytes := (heapBytes() - before) / float64(n)
		kase := fmt.Sprint(n)
		r.record(kase, heapAlone, map[string]float64{"bytes": bytes})
		for range r.size.headRepeat {
			began := time.Now()
			for range r.size.head * 5 / batch {
				if err := churn.cycle(ctx, idx, batch); err != nil {
					return err
				}
			}
			perEntry := time.Since(began).Seconds() * 1e6 / float64(r.size.head*5)
			r.record(kase, heapAlone, map[string]float64{"took": perEntry})
		}
		if idx.Len() != n {
			return fmt.Errorf("the heap holds %d entries, want %d", idx.Len(), n)
		}
	}
	return nil
}

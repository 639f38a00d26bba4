package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// slots of a worker process in all workloads: dueclaim's, River's and asynq's.
const slots = 2000

// dueclaimQueue is one producer and one or more schedulers on the same parts.
type dueclaimQueue struct {
	parts
	o        options
	producer *core.Producer
}

func newDueclaim(p parts, o options) (*dueclaimQueue, error) {
	producer, err := core.NewProducer(p.index, p.store, core.ProducerOptions{})
	if err != nil {
		return nil, err
	}
	return &dueclaimQueue{parts: p, o: o, producer: producer}, nil
}

func taskID(n int) core.ID { return core.ID(fmt.Sprintf("task-%09d", n)) }

func (t task) core() core.Task {
	return core.Task{ID: taskID(t.N), Kind: "bench", Payload: t.payload(), Due: t.due}
}

func (q *dueclaimQueue) schedule(ctx context.Context, tasks []task) error {
	list := make([]core.Task, len(tasks))
	for i, t := range tasks {
		list[i] = t.core()
	}
	return q.producer.Schedule(ctx, list...)
}

func (q *dueclaimQueue) prepare(ctx context.Context) error {
	if q.tidy == nil {
		return nil
	}
	return q.tidy(ctx)
}

func (q *dueclaimQueue) work(ctx context.Context, started, finished func(n int)) (func() error, error) {
	var handler core.Handler
	if q.o.raw {
		handler = core.HandlerFunc(func(_ context.Context, j *core.Job) error {
			n, err := numberIn(j.Task.Payload)
			if err == nil {
				started(n)
			}
			return err
		})
	} else {
		mux := new(core.Mux)
		core.Handle(mux, "bench", func(_ context.Context, _ *core.Job, t task) error {
			started(t.N)
			return nil
		})
		handler = mux
	}
	opt := core.Options{
		Slots: slots, Ahead: q.o.ahead,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Observer: core.Observer{Settled: func(_ core.Settlement, err error) {
			if err == nil {
				finished(1)
			}
		}},
	}
	if q.o.claimed != nil {
		opt.Observer.Claimed = func(s core.ClaimStats) {
			q.o.claimed(s.Granted, s.Held+s.NotDue+s.Gone+s.Refused)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	n := max(1, q.o.workers)
	errs := make([]error, n)
	var all sync.WaitGroup
	join := func() error { stop(); all.Wait(); return errors.Join(errs...) }
	for i := range n {
		s, err := core.New(q.index, q.store, handler, opt)
		if err != nil {
			return nil, errors.Join(err, join())
		}
		all.Go(func() { errs[i] = s.Run(ctx) })
	}
	return join, nil
}

func (q *dueclaimQueue) left(ctx context.Context) (int, error) {
	// Running ones too: their leases are over by then.
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	rows, err := q.store.Waiting(ctx, far, core.Entry{}, far, 1_000_000)
	return len(rows), err
}

func (q *dueclaimQueue) close() error { return q.free() }

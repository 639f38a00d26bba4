package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/internal/parts"
	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

// orders is what the parent tells a worker.
type orders struct {
	Parts   parts.Choice
	Lease   time.Duration
	Records string // path of the file for the worker's records
}

// kind names the tasks of this example.
const kind = "demo"

// payload is what a task of this example carries, as JSON.
type payload struct {
	WorkMillis int `json:"work_ms"`
}

// ahead is how long before its due time a task is claimed, so that it starts on
// the dot: longer than a claim takes on a busy machine. SQLite runs one transaction
// at a time, so the workers wait for each other there.
func ahead(o orders) time.Duration {
	d := 100 * time.Millisecond
	if o.Parts.OnSQLite() {
		d = 200 * time.Millisecond
	}
	return min(d, o.Lease/4)
}

// work is a worker process: an index, a store, a handler and a scheduler, until
// ctx is done.
func work(ctx context.Context, o orders) error {
	p, err := parts.Open(ctx, o.Parts)
	if err != nil {
		return err
	}
	defer p.Close()
	name, _ := workers.Name()
	records, err := createRecords(o.Records, name)
	if err != nil {
		return err
	}
	defer records.close()

	var mux core.Mux
	core.Handle(&mux, kind, func(ctx context.Context, job *core.Job, task payload) error {
		if err := records.started(job); err != nil {
			return err
		}
		select { // the work itself
		case <-time.After(time.Duration(task.WorkMillis) * time.Millisecond):
		case <-ctx.Done(): // the lease was lost, or the process shuts down for too long
			return context.Cause(ctx)
		}
		return records.finished(job)
	})

	scheduler, err := core.New(p.Index, p.Store, &mux, core.Options{
		Name:     name,
		Lease:    o.Lease,
		Ahead:    ahead(o),
		Drain:    5 * time.Second,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("worker", name),
		Observer: core.Observer{Settled: records.settled},
	})
	if err != nil {
		return err
	}
	if err := scheduler.Run(ctx); err != nil {
		return fmt.Errorf("while shutting down: %w", err)
	}
	return nil
}

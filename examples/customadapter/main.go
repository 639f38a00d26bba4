// Command customadapter runs a few delayed tasks on a time index of its own,
// package wheelindex below, and the in-memory claim store. Any other store would do.
//
//	go run ./examples/customadapter
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/customadapter/wheelindex"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run schedules tasks in the wrong order and returns when all have run.
func run(ctx context.Context, out io.Writer) error {
	index, store := wheelindex.New(), claim.NewMemory(claim.MemoryOptions{})
	producer, err := core.NewProducer(index, store, core.ProducerOptions{})
	if err != nil {
		return err
	}
	now := time.Now()
	if err := producer.Schedule(ctx,
		core.Task{ID: "last", Due: now.Add(900 * time.Millisecond)},
		core.Task{ID: "first", Due: now.Add(300 * time.Millisecond)},
		core.Task{ID: "second", Due: now.Add(600 * time.Millisecond)},
	); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	handler := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		fmt.Fprintf(out, "%-6s ran %s after its due time\n", job.Task.ID, job.Lateness().Round(10*time.Microsecond))
		if job.Task.ID == "last" {
			cancel() // Run still settles it
		}
		return nil
	})
	scheduler, err := core.New(index, store, handler, core.Options{})
	if err != nil {
		return err
	}
	if err := scheduler.Run(ctx); err != nil {
		return err
	}
	left, err := index.Due(context.WithoutCancel(ctx), now.AddDate(1, 0, 0), 10)
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left in the index: %v", left))
	}
	return err
}

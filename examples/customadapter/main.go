// Command customadapter runs a few delayed tasks on a time index of its own,
// package wheelindex below, and the in-memory claim store. Any other store would do.
//
//	go run ./examples/customadapter
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
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
	tasks := []core.Task{
		{ID: "last", Due: now.Add(900 * time.Millisecond)},
		{ID: "first", Due: now.Add(300 * time.Millisecond)},
		{ID: "second", Due: now.Add(600 * time.Millisecond)},
	}
	if err := producer.Schedule(ctx, tasks...); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // handlers run side by side
	ran := map[core.ID]bool{}
	handler := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%-6s ran %s after its due time\n", job.Task.ID, job.Lateness().Round(10*time.Microsecond))
		if ran[job.Task.ID] = true; len(ran) == len(tasks) {
			cancel() // Run still settles it
		}
		return nil
	})
	scheduler, err := core.New(index, store, handler, core.Options{})
	if err != nil {
		return err
	}
	return scheduler.Run(ctx)
}

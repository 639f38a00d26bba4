package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// A producer schedules, a scheduler runs. Programs call Run; here Tick says what
// time it is.
func Example() {
	ctx := context.Background()
	index, store := heapindex.New(), claim.NewMemory(claim.MemoryOptions{})

	var mux core.Mux
	core.Handle(&mux, "remind", func(_ context.Context, _ *core.Job, r struct{ To string }) error {
		fmt.Println("dear", r.To)
		return nil
	})
	scheduler, err := core.New(index, store, &mux, core.Options{})
	if err != nil {
		panic(err)
	}
	producer, err := core.NewProducer(index, store, core.ProducerOptions{})
	if err != nil {
		panic(err)
	}

	due := time.Date(2031, 1, 1, 9, 0, 0, 0, time.UTC)
	err = producer.Schedule(ctx, core.Task{ID: "r-1", Kind: "remind", Payload: []byte(`{"To":"Ada"}`), Due: due})
	if err != nil {
		panic(err)
	}
	n, _ := scheduler.Tick(ctx, due.Add(-time.Hour))
	fmt.Println("an hour before:", n)
	n, _ = scheduler.Tick(ctx, due)
	fmt.Println("when due:", n)
	// Output:
	// an hour before: 0
	// dear Ada
	// when due: 1
}

// A batch is stored as far as it can be; the error names the rest.
func ExampleProducer_Schedule_refused() {
	producer, err := core.NewProducer(heapindex.New(), claim.NewMemory(claim.MemoryOptions{}), core.ProducerOptions{})
	if err != nil {
		panic(err)
	}
	due := time.Date(2031, 1, 1, 9, 0, 0, 0, time.UTC)
	err = producer.Schedule(context.Background(),
		core.Task{ID: "order-1", Due: due}, core.Task{ID: "order-2 ", Due: due}, core.Task{ID: "order-3", Due: due})
	var batch *core.BatchError
	if errors.As(err, &batch) {
		for _, item := range batch.Items {
			fmt.Println(item)
		}
	}
	// Output:
	// item 1, id "order-2 ": invalid: id "order-2 " begins or ends with white space
}

// A handler chooses how its task goes on.
func ExampleHandlerFunc() {
	pay := func(context.Context, string) error { return errors.New("card expired") }
	handler := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		err := pay(ctx, string(job.Task.Payload))
		switch {
		case err == nil:
			return nil
		case job.Failures() >= 3:
			return core.Dead(err) // kept for somebody to see
		case time.Now().Weekday() == time.Sunday:
			return core.RetryAt(time.Now().Add(24*time.Hour), err)
		default:
			return err // after the usual back-off
		}
	})
	fmt.Println(handler.Handle(context.Background(), &core.Job{Attempt: 4}))
	// Output: card expired
}

package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// task is what every system gets: a number by which the harness knows it, and
// ballast that makes its stored payload about 100 bytes.
type task struct {
	N   int    `json:"n"`
	Pad string `json:"pad"`

	due time.Time
}

var pad = strings.Repeat("x", 80)

func newTask(n int, due time.Time) task { return task{N: n, Pad: pad, due: due} }

func (t task) payload() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // a struct of an int and a string
	}
	return b
}

// queue is a system under test, set up afresh for one run.
type queue interface {
	// schedule stores tasks in one call, of the system's own kind for that many.
	schedule(ctx context.Context, tasks []task) error
	// work starts the system's workers. They call started with the number of each
	// task as its handler begins, having read its payload, and finished with how many
	// results were recorded. stop ends them and waits.
	work(ctx context.Context, started func(n int), finished func(n int)) (stop func() error, err error)
	// left counts tasks that are not finished, by the system's own books.
	left(ctx context.Context) (int, error)
	close() error
}

// system is a way to set up a queue.
type system struct {
	name     string
	settings string // what a reader has to know to repeat it
	servers  []serverKind
	open     func(ctx context.Context, m *machine, o options) (queue, error)
}

// options of a run that differ between workloads.
type options struct {
	keep    bool          // finished rows are kept
	workers int           // schedulers on the same queue; 0: one
	ahead   time.Duration // dueclaim's Options.Ahead; 0: the default, negative: none
}

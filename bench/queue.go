package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

// newTask returns the task of that number. Its due time is a whole millisecond, so
// that no system's rounding is taken for lateness.
func newTask(n int, due time.Time) task {
	return task{N: n, Pad: pad, due: due.Truncate(time.Millisecond)}
}

func (t task) payload() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // a struct of an int and a string
	}
	return b
}

// numberIn finds a task's number in a payload.
func numberIn(payload []byte) (int, error) {
	digits, found := bytes.CutPrefix(payload, []byte(`{"n":`))
	n, end := 0, 0
	for end < len(digits) && '0' <= digits[end] && digits[end] <= '9' {
		n = 10*n + int(digits[end]-'0')
		end++
	}
	if !found || end == 0 {
		return 0, fmt.Errorf("no number in the payload %q", payload)
	}
	return n, nil
}

// queue is a system under test, set up afresh for one run.
type queue interface {
	// schedule stores tasks in one call, of the system's own kind for that many.
	schedule(ctx context.Context, tasks []task) error
	// prepare is called after many were scheduled and before they are worked off:
	// the database gathers its statistics, as it would in time by itself, and writes
	// out what it has changed, so that this isn't charged to what follows.
	prepare(ctx context.Context) error
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

	peer    bool          // none of dueclaim's
	plain   bool          // with its defaults, where a tuned one is measured too
	share   float64       // of a drain's tasks, so that slow ones don't take all the time; 0: all
	keeps   []bool        // which of kept (true) and deleted finished tasks it can do
	ahead   time.Duration // options.ahead
	oneOnly bool          // it has no call for many tasks
	raw     bool          // options.raw; it differs from another system in the handler only
}

// start opens a queue of the system.
func (s system) start(ctx context.Context, m *machine, o options) (queue, error) {
	if s.ahead != 0 {
		o.ahead = s.ahead
	}
	o.raw = s.raw
	return s.open(ctx, m, o)
}

// of is the system's share of n tasks.
func (s system) of(n int) int {
	if s.share == 0 {
		return n
	}
	return max(1, int(float64(n)*s.share))
}

// options of a run that differ between workloads.
type options struct {
	keep    bool                       // finished rows are kept
	workers int                        // schedulers on the same queue; 0: one
	ahead   time.Duration              // dueclaim's Options.Ahead; 0: the default, negative: none
	claimed func(granted, refused int) // dueclaim: told of each batch that was claimed
	raw     bool                       // dueclaim: the handler reads payloads as bytes
}

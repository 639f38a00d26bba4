// Quickstart shows dueclaim's main job with no server at hand: it schedules tasks,
// lets three worker processes run them on the dot, kills one of them in the
// middle, and proves from the database and the workers' own records that nothing
// was lost and nothing ran twice.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -index redis://localhost:6379/0 -store postgres://user:password@localhost:5432/database
//
// Where to read: worker.go is what a program that uses dueclaim looks like; run.go
// schedules the tasks and puts the workers through it; summary.go is the proof.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

func main() {
	if _, ok := workers.Name(); ok {
		os.Exit(workers.Main(work))
	}
	os.Exit(parent(os.Args[1:]))
}

// parent is the main of the process that the user started. It returns the exit
// status: 0 when every task ran once, 1 when not, 2 for a wrong command line.
func parent(args []string) int {
	set, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program the hard way

	sum, err := run(ctx, set)
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		return 1
	}
	sum.print(os.Stdout)
	if sum.failed() {
		return 1
	}
	return 0
}

// Orders is the case that dueclaim comes from: a shop cancels an order that isn't
// paid within 30 minutes and gives its stock back, and leaves one alone that was
// paid meanwhile. It plays a day of 5,000 orders (orders.csv) in half a minute,
// with three worker processes that cancel, one of which is killed in the middle,
// and then checks the shop's tables against the file.
//
//	go run ./examples/orders
//	go run ./examples/orders -index redis://localhost:6379/0 -store mysql://user:password@localhost:3306/database
//
// Where to read: shop.go is the web shop: an order and its task are stored in one
// transaction. worker.go cancels: the order, the stock and the task's completion
// are changed in one transaction. check.go is the proof.
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
// status: 0 when the shop's books are right, 1 when not, 2 for a wrong command
// line.
func parent(args []string) int {
	set, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "orders:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program the hard way

	rep, err := run(ctx, set)
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		return 1
	}
	rep.print(os.Stdout)
	if rep.failed() {
		return 1
	}
	return 0
}

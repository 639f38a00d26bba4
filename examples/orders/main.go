// Orders is the case that dueclaim comes from: a shop cancels an order that isn't
// paid within 30 minutes and gives its stock back, and leaves one alone that was
// paid meanwhile. There is no table of tasks: what the workers claim is the row of
// the shop's own table of orders. It plays a day of 5,000 orders (orders.csv) in
// half a minute, with three worker processes that cancel, some of which are killed
// in the middle, and a process of customers who pay, many of them in the very
// moment when their time is up. Then it checks the shop's books against the file.
//
//	go run ./examples/orders
//	go run ./examples/orders -mode full -index redis://localhost:6379/0 -store mysql://user:password@localhost:3306/database
//	go run ./examples/orders -mode transition -orders 20000 -speed 1200
//
// Where to read: table.go tells dueclaim which column of the shop's table plays
// which part, in three ways (-mode). worker.go cancels: the order, the stock and
// the order's completion are changed in one transaction. shop.go takes orders with
// plain SQL and tells the index; customers.go pays, also with plain SQL. check.go
// is the proof.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

func main() {
	time.Local = time.UTC // the shop's table shows UTC, whatever the machine's zone is
	if _, ok := workers.Name(); ok {
		os.Exit(workers.Main(child))
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

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/internal/parts"
	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

// instructions is what the parent tells another process.
type instructions struct {
	Parts parts.Choice
	Mode  mode
	Lease time.Duration
	Delay time.Duration // until an order is due
	// For the customers:
	Clock  shopClock
	Orders int
}

// child is the main of the other processes.
func child(ctx context.Context, in instructions) error {
	if name, _ := workers.Name(); name == customersName {
		return playCustomers(ctx, in)
	}
	return work(ctx, in)
}

// work is a worker process: it cancels orders until ctx is done.
func work(ctx context.Context, in instructions) error {
	db, err := openDatabase(ctx, in.Parts)
	if err != nil {
		return err
	}
	defer db.Close()
	table, err := db.openOrders(ctx, in.Mode, in.Delay, in.Lease)
	if err != nil {
		return err
	}
	name, _ := workers.Name()
	c := &canceller{db: db, table: table, worker: name}
	cancel := c.cancelAndSettle
	if in.Mode == transition {
		cancel = c.cancelAsOneStep
	}
	var mux core.Mux
	mux.Register(kind, core.HandlerFunc(cancel))
	scheduler, err := core.New(db.Index, table, &mux, core.Options{
		Name:  name,
		Slots: 32,
		Lease: in.Lease, // the same as the table's LeaseFor
		Ahead: 100 * time.Millisecond,
		Drain: 5 * time.Second,
		// A customer who pays while a worker has the order in hand takes it away from
		// that worker. Here this is common, and no more than a warning.
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("worker", name),
		Observer: core.Observer{
			Started:  func(job *core.Job, _ time.Duration) { tell(started, job) },
			Returned: func(job *core.Job, _ time.Duration, _ error) { tell(returned, job) },
		},
	})
	if err != nil {
		return err
	}
	if err := scheduler.Run(ctx); err != nil {
		return fmt.Errorf("while shutting down: %w", err)
	}
	return nil
}

func tell(what what, job *core.Job) {
	_ = workers.Tell(note{What: what, Order: string(job.Task.ID)}) // a parent that is gone closes the other pipe too
}

// canceller handles the orders whose time is up.
type canceller struct {
	db     *database
	table  parts.Table
	worker string
}

// cancelAndSettle is the handler of the modes full and status: the stock comes back
// and the order's own row becomes 'cancelled' (by SettleTx, the last statement) in
// one transaction. After a crash at any moment either all is done or nothing, and
// then another worker does it. If the customer paid meanwhile, or the order is
// gone, SettleTx fails and all is rolled back.
func (c *canceller) cancelAndSettle(ctx context.Context, job *core.Job) error {
	if err := askPaymentProvider(ctx); err != nil {
		return err
	}
	err := c.db.InTx(ctx, func(tx *sql.Tx) error {
		if err := c.giveBack(ctx, tx, job); err != nil {
			return err
		}
		return c.table.SettleTx(ctx, tx, job.Now(), []core.Settlement{job.Done()})
	})
	if errors.Is(err, core.ErrLeaseLost) {
		tell(outrun, job)
	}
	if err != nil {
		return err // rolled back; if the order is still open it is tried again, by whoever claims it then
	}
	return core.SettledAs(job.Done())
}

// cancelAsOneStep is the handler of the mode transition: the order's row becomes
// 'cancelled' only if it still is 'pending', and then the stock comes back in the
// same transaction. If somebody else was quicker there is nothing to do.
func (c *canceller) cancelAsOneStep(ctx context.Context, job *core.Job) error {
	if err := askPaymentProvider(ctx); err != nil {
		return err
	}
	first := false
	err := c.table.Transition(ctx, job, func(tx *sql.Tx) error {
		first = true
		return c.giveBack(ctx, tx, job)
	})
	if err == nil && !first {
		tell(outrun, job)
	}
	return err
}

// giveBack gives an order's stock back and writes the cancellation down, for the
// check in the end.
func (c *canceller) giveBack(ctx context.Context, tx *sql.Tx, job *core.Job) error {
	order := string(job.Task.ID)
	if err := c.db.restock(ctx, tx, order); err != nil {
		return err
	}
	_, err := c.db.change(ctx, tx, "INSERT INTO shop_cancellations (order_id, worker, crashes, at_ms, late_us) VALUES (?, ?, ?, ?, ?)",
		order, c.worker, job.Crashes, job.Now().UnixMilli(), job.Lateness().Microseconds())
	return err
}

// askPaymentProvider stands for a question to somebody outside that takes a while.
func askPaymentProvider(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

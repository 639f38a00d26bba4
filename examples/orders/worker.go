package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/internal/parts"
	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

// instructions is what the parent tells a worker.
type instructions struct {
	Parts parts.Choice
	Lease time.Duration
}

// work is a worker process: it cancels orders until ctx is done.
func work(ctx context.Context, o instructions) error {
	db, err := openDatabase(ctx, o.Parts)
	if err != nil {
		return err
	}
	defer db.Close()
	name, _ := workers.Name()
	var mux core.Mux
	mux.Register(kind, core.HandlerFunc((&canceller{db: db, worker: name}).cancelUnpaid))
	scheduler, err := core.New(db.Index, db.Store, &mux, core.Options{
		Name:  name,
		Slots: 16,
		Lease: o.Lease,
		Ahead: min(100*time.Millisecond, o.Lease/4),
		Drain: 5 * time.Second,
		// A customer who pays while a worker has the task in hand takes it away from
		// that worker. Here this is common, and no more than a warning.
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("worker", name),
	})
	if err != nil {
		return err
	}
	if err := scheduler.Run(ctx); err != nil {
		return fmt.Errorf("while shutting down: %w", err)
	}
	return nil
}

// canceller handles the tasks.
type canceller struct {
	db     *database
	worker string
}

// cancelUnpaid cancels an order that is still pending and gives its stock back.
// That and the completion of the task are committed together: after a crash at any
// moment either both are done or neither, and then another worker does it.
func (c *canceller) cancelUnpaid(ctx context.Context, job *core.Job) error {
	if err := askPaymentProvider(ctx); err != nil {
		return err
	}
	id := string(job.Task.ID)
	err := c.db.InTx(ctx, func(tx *sql.Tx) error {
		n, err := c.db.change(ctx, tx, "UPDATE shop_orders SET status = 'cancelled' WHERE id = ? AND status = 'pending'", id)
		if err != nil {
			return err
		}
		if n == 1 { // else it was paid meanwhile: leave it alone
			// the goods come back
			_, err := c.db.change(ctx, tx, "INSERT INTO shop_stock (sku, moved) SELECT sku, quantity FROM shop_items WHERE order_id = ?", id)
			if err != nil {
				return err
			}
			if err := c.record(ctx, tx, job); err != nil {
				return err
			}
		}
		return c.db.Store.SettleTx(ctx, tx, job.Now(), []core.Settlement{job.Done()})
	})
	if err != nil {
		return err // rolled back: the task is tried again, by whoever holds it then
	}
	return core.Settled
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

// record writes down the cancellation, for the check in the end.
func (c *canceller) record(ctx context.Context, tx *sql.Tx, job *core.Job) error {
	takenOver := min(job.Crashes, 1)
	_, err := c.db.change(ctx, tx, "INSERT INTO shop_cancellations (order_id, worker, taken_over, at, late_us) VALUES (?, ?, ?, ?, ?)",
		string(job.Task.ID), c.worker, takenOver, job.Now().UnixMilli(), job.Lateness().Microseconds())
	return err
}

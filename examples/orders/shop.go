package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

const (
	allowed = 30 * time.Minute // to pay, by the file's day
	kind    = "cancel unpaid order"

	// atOnce is how many orders or payments share a transaction at most.
	atOnce = 50

	// forgetEvery is how often the shop "crashes" after a payment and before it
	// cancels the task. Nothing may depend on that cancel: it only saves a run.
	forgetEvery = 20
)

// shop is the web shop: it takes orders and payments.
type shop struct {
	db       *database
	producer *core.Producer
	clock    shopClock
	placed   atomic.Int64 // orders of the file that are stored

	mu       sync.Mutex
	accepted map[string]bool // orders whose payment was accepted
	tooLate  int             // payments refused, since the order was cancelled already
	early    int             // of those: refused before the order's time was over, which must not be
	forgot   int             // tasks not cancelled, on purpose
}

// day plays the whole file. Orders and payments don't wait for each other, but for
// a payment's own order.
func (s *shop) day(ctx context.Context, orders []order) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var errs [2]error
	for i, take := range []func(context.Context, []order) error{s.takeOrders, s.takePayments} {
		wg.Go(func() {
			if errs[i] = take(ctx, orders); errs[i] != nil {
				cancel() // the other one
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// takeOrders stores orders when their time has come.
func (s *shop) takeOrders(ctx context.Context, orders []order) error {
	return s.everyTick(ctx, func(now time.Time) (over bool, err error) {
		n, _ := slices.BinarySearchFunc(orders, now, func(o order, now time.Time) int {
			return cmp.Or(o.placed.Compare(now), -1) // those at now too
		})
		for batch := range slices.Chunk(orders[:n], atOnce) {
			if err := s.place(ctx, batch); err != nil {
				return false, fmt.Errorf("take orders: %w", err)
			}
			s.placed.Add(int64(len(batch)))
		}
		orders = orders[n:]
		return len(orders) == 0, nil
	})
}

// takePayments takes payments when their time has come.
func (s *shop) takePayments(ctx context.Context, orders []order) error {
	waiting := map[int]order{} // by the order's place in the file
	for i, o := range orders {
		if !o.paid.IsZero() {
			waiting[i] = o
		}
	}
	return s.everyTick(ctx, func(now time.Time) (over bool, err error) {
		placed := int(s.placed.Load())
		var come []order
		for i, o := range waiting {
			if i < placed && !o.paid.After(now) {
				come = append(come, o)
				delete(waiting, i)
			}
		}
		slices.SortFunc(come, func(a, b order) int { return a.paid.Compare(b.paid) })
		for batch := range slices.Chunk(come, atOnce) {
			if err := s.pay(ctx, batch); err != nil {
				return false, fmt.Errorf("take payments: %w", err)
			}
		}
		return len(waiting) == 0, nil
	})
}

// everyTick calls f again and again with the time of the file's day, until it is
// over.
func (s *shop) everyTick(ctx context.Context, f func(now time.Time) (over bool, err error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if over, err := f(s.clock.now()); over || err != nil {
			return err
		}
	}
}

// place stores orders with their items, takes their stock, and stores for each
// the task that will cancel it: all in one transaction, so that no order is ever
// without its task.
func (s *shop) place(ctx context.Context, orders []order) error {
	call, err := s.producer.NewCall(ctx)
	if err != nil {
		return err
	}
	tasks := make([]core.Task, len(orders))
	entries := make([]core.Entry, len(orders))
	var orderRows, itemRows, stockRows []any
	for i, o := range orders {
		due := core.CeilMilli(s.clock.due(o.placed.Add(allowed)))
		tasks[i] = core.Task{ID: core.ID(o.id), Kind: kind, Due: due}
		entries[i] = core.Entry{ID: core.ID(o.id), Due: due}
		orderRows = append(orderRows, o.id, "pending", due.UnixMilli())
		for _, it := range o.items {
			itemRows = append(itemRows, o.id, it.sku, it.quantity)
			stockRows = append(stockRows, it.sku, -it.quantity)
		}
	}
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := s.db.change(ctx, tx, "INSERT INTO shop_orders (id, status, due_at) VALUES "+rows("(?, ?, ?)", orderRows), orderRows...); err != nil {
			return err
		}
		if _, err := s.db.change(ctx, tx, "INSERT INTO shop_items (order_id, sku, quantity) VALUES "+rows("(?, ?, ?)", itemRows), itemRows...); err != nil {
			return err
		}
		if _, err := s.db.change(ctx, tx, "INSERT INTO shop_stock (sku, moved) VALUES "+rows("(?, ?)", stockRows), stockRows...); err != nil {
			return err
		}
		return s.db.Store.InsertTx(ctx, tx, call, tasks)
	})
	if err != nil {
		return err
	}
	// After the commit, tell the index. If that fails, the next sweep finds the tasks.
	_ = s.producer.Track(ctx, entries...)
	return nil
}

// pay takes payments, as they come from the customers or their banks. The orders'
// rows decide which of them came in time. Afterwards the tasks of paid orders are
// cancelled, since they aren't needed any more. If that comes too late, or not at
// all, the task runs and finds the order paid.
func (s *shop) pay(ctx context.Context, orders []order) error {
	var inTime []core.ID
	var tooLate []int64 // when those orders' time was over
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		for _, o := range orders {
			n, err := s.db.change(ctx, tx, "UPDATE shop_orders SET status = 'paid' WHERE id = ? AND status = 'pending'", o.id)
			if err != nil {
				return err
			}
			if n == 1 {
				inTime = append(inTime, core.ID(o.id))
				continue
			}
			var dueAt int64
			if err := tx.QueryRowContext(ctx, s.db.query("SELECT due_at FROM shop_orders WHERE id = ?"), o.id).Scan(&dueAt); err != nil {
				return err
			}
			tooLate = append(tooLate, dueAt)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.noteRefused(tooLate)
	if tasks := s.noteAccepted(inTime); len(tasks) > 0 {
		_, _ = s.producer.Cancel(ctx, tasks...) // an error is no trouble, see above
	}
	return nil
}

// noteRefused counts payments that came too late.
func (s *shop) noteRefused(dueAt []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.storeNow().UnixMilli()
	for _, due := range dueAt {
		s.tooLate++
		if now < due {
			s.early++
		}
	}
}

// noteAccepted notes payments and returns those whose tasks the shop cancels; after
// the others it "crashes".
func (s *shop) noteAccepted(orders []core.ID) (remembered []core.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range orders {
		s.accepted[string(id)] = true
		if len(s.accepted)%forgetEvery == 0 {
			s.forgot++
		} else {
			remembered = append(remembered, id)
		}
	}
	return remembered
}

func (s *shop) paidSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted)
}

// rows is the list of placeholders for as many rows as there are values for.
func rows(row string, values []any) string {
	n := len(values) / strings.Count(row, "?")
	return strings.TrimSuffix(strings.Repeat(row+", ", n), ", ")
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }

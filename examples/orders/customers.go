package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

// customersName is the name of the process in which the customers are.
const customersName = "customers"

// Every so many of the orders that nobody pays are withdrawn about when their time
// is up: by turns the customer cancels the order, or the shop's staff deletes it.
const withdrawEvery = 20

// visit is what somebody does to an order, by the store's clock at a given time.
type visit struct {
	order string
	what  what // paid, withdrawn or deleted
	at    time.Time
	due   time.Time // of the order
}

// visits plans the whole run, by time. It is over soon after the last order's time
// is up; who would come later doesn't.
func visits(orders []order, clock shopClock) []visit {
	var all []visit
	unpaid := 0
	over := clock.due(orders[len(orders)-1]).Add(time.Second)
	for _, o := range orders {
		v := visit{order: o.id, what: paid, due: clock.due(o)}
		if o.paid.IsZero() {
			unpaid++
			v.what = withdrawn
			if unpaid%(2*withdrawEvery) == 0 {
				v.what = deleted
			}
			v.at = v.due.Add(time.Duration(unpaid%7-3) * 20 * time.Millisecond)
			if unpaid%withdrawEvery != 0 {
				continue
			}
		} else {
			v.at = clock.paysAt(o)
		}
		if !v.at.After(over) {
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, func(a, b visit) int { return a.at.Compare(b.at) })
	return all
}

// customers is the process that pays.
type customers struct {
	db    *database
	clock shopClock
}

// playCustomers plays all visits and tells the parent what came of each.
func playCustomers(ctx context.Context, in instructions) error {
	orders, err := readOrders(ordersCSV, in.Orders)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, in.Parts)
	if err != nil {
		return err
	}
	defer db.Close()
	c := &customers{db: db, clock: in.Clock}
	waiting := visits(orders, in.Clock)
	err = everyTick(ctx, func() (over bool, err error) {
		now := c.clock.storeNow()
		n := slices.IndexFunc(waiting, func(v visit) bool { return v.at.After(now) })
		if n < 0 {
			n = len(waiting)
		}
		early, err := c.come(ctx, waiting[:n])
		waiting = append(early, waiting[n:]...)
		return len(waiting) == 0, err
	})
	if ctx.Err() != nil {
		return nil // the parent has enough
	}
	return err
}

// come makes visits, side by side, and returns those whose orders the shop has not
// stored yet. Each has a transaction of its own, unless the database is so slow that
// many have come meanwhile.
func (c *customers) come(ctx context.Context, all []visit) (early []visit, err error) {
	const sideBySide = 8
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, sideBySide)
	for few := range slices.Chunk(all, min(1+len(all)/sideBySide, atOnce)) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			again, visitErr := c.visit(ctx, few)
			mu.Lock()
			defer mu.Unlock()
			early, err = append(early, again...), errors.Join(err, visitErr)
		})
	}
	wg.Wait()
	slices.SortStableFunc(early, func(a, b visit) int { return a.at.Compare(b.at) })
	return early, err
}

// visit makes a few visits in one transaction. The order's row decides which of
// them comes in time: a condition in the UPDATE is all that the shop's own code
// needs beside workers that claim the same rows.
func (c *customers) visit(ctx context.Context, few []visit) (early []visit, err error) {
	var notes []note
	err = c.db.InTx(ctx, func(tx *sql.Tx) error {
		for _, v := range few {
			ok, err := c.end(ctx, tx, v)
			if err != nil {
				return err
			}
			if ok {
				notes = append(notes, note{What: v.what, Order: v.order})
				continue
			}
			open, err := c.stillToCome(ctx, tx, v.order)
			switch {
			case err != nil:
				return err
			case open:
				early = append(early, v)
			case v.what == paid && c.clock.storeNow().Before(v.due):
				notes = append(notes, note{What: refusedEarly, Order: v.order})
			case v.what == paid:
				notes = append(notes, note{What: refused, Order: v.order})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("customers: %w", err)
	}
	for _, n := range notes { // after the commit
		if err := workers.Tell(n); err != nil {
			return nil, err
		}
	}
	return early, nil
}

// stillToCome tells whether the shop has not stored an order yet, or only just now:
// a customer is quicker than a shop that has much to do.
func (c *customers) stillToCome(ctx context.Context, tx *sql.Tx, order string) (bool, error) {
	var status string
	err := tx.QueryRowContext(ctx, c.db.query("SELECT status FROM shop_orders WHERE order_id = ?"), order).Scan(&status)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return status == "pending" || status == "processing", err
}

// end ends an order that is open, with what belongs to that, and tells whether it
// did. A worker that has the order in hand learns of it when it wants to settle.
func (c *customers) end(ctx context.Context, tx *sql.Tx, v visit) (bool, error) {
	var n int64
	var err error
	now := dateTime(c.clock.storeNow())
	switch v.what {
	case paid:
		n, err = c.db.change(ctx, tx, "UPDATE shop_orders SET status = 'completed', updated_at = ? WHERE order_id = ? AND status IN ('pending', 'processing')", now, v.order)
	case withdrawn:
		n, err = c.db.change(ctx, tx, "UPDATE shop_orders SET status = 'cancelled', updated_at = ? WHERE order_id = ? AND status IN ('pending', 'processing')", now, v.order)
	case deleted:
		n, err = c.db.change(ctx, tx, "DELETE FROM shop_orders WHERE order_id = ? AND status IN ('pending', 'processing')", v.order)
	}
	switch {
	case err != nil || n == 0:
		return false, err
	case v.what == paid:
		_, err = c.db.change(ctx, tx, "INSERT INTO shop_sales (sku, quantity) SELECT sku, quantity FROM shop_items WHERE order_id = ?", v.order)
	default:
		err = c.db.restock(ctx, tx, v.order)
	}
	return true, err
}

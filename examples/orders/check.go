package main

import (
	"context"
	"fmt"
	"time"
)

// books is what the shop's tables say in the end.
type books struct {
	orders    []orderFacts
	available map[string]int // of each product
	live      int            // tasks that are pending or running
	dead      int            // tasks that were given up
	done      int            // tasks that ran
}

// orderFacts is an order's row with its cancellations.
type orderFacts struct {
	id, status    string
	dueAt         int64 // ms
	cancellations []cancellation
}

type cancellation struct {
	takenOver bool
	at        int64 // ms
	late      time.Duration
}

// readBooks reads the tables.
func (d *database) readBooks(ctx context.Context) (books, error) {
	b := books{available: map[string]int{}}
	cancellations := map[string][]cancellation{}
	err := d.each(ctx, "SELECT order_id, taken_over, at, late_us FROM shop_cancellations", func(scan scanner) error {
		var id string
		var takenOver int
		var c cancellation
		var late int64
		err := scan(&id, &takenOver, &c.at, &late)
		c.takenOver, c.late = takenOver > 0, time.Duration(late)*time.Microsecond
		cancellations[id] = append(cancellations[id], c)
		return err
	})
	if err != nil {
		return b, err
	}
	err = d.each(ctx, "SELECT id, status, due_at FROM shop_orders", func(scan scanner) error {
		var o orderFacts
		err := scan(&o.id, &o.status, &o.dueAt)
		o.cancellations = cancellations[o.id]
		b.orders = append(b.orders, o)
		return err
	})
	if err != nil {
		return b, err
	}
	err = d.each(ctx, "SELECT sku, SUM(moved) FROM shop_stock GROUP BY sku", func(scan scanner) error {
		var sku string
		var n int
		err := scan(&sku, &n)
		b.available[sku] = n
		return err
	})
	if err != nil {
		return b, err
	}
	counts, err := d.Counts(ctx)
	b.live, b.dead, b.done = counts["pending"]+counts["running"], counts["dead"], counts["done"]
	return b, err
}

type scanner func(dest ...any) error

func (d *database) each(ctx context.Context, text string, f func(scan scanner) error) error {
	rows, err := d.DB.QueryContext(ctx, d.query(text))
	if err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return fmt.Errorf("read the books: %w", err)
		}
	}
	return rows.Err()
}

// check is a rule, and how many broke it.
type check struct {
	rule   string
	broken int
}

// audit holds the books against the file and against what the shop told its
// customers: accepted are the orders whose payment it took. initially is the stock
// of each product before the day.
func audit(b books, orders []order, accepted map[string]bool, initially map[string]int) []check {
	missing := check{rule: "every order of the file is in the books"}
	unpaid := check{rule: "every unpaid order was cancelled, exactly once"}
	paid := check{rule: "no paid order was touched"}
	early := check{rule: "no order was cancelled before its time"}
	stock := check{rule: "the stock of every product adds up"}
	tasks := check{rule: "no task is left over", broken: b.live + b.dead}

	facts := map[string]orderFacts{}
	for _, o := range b.orders {
		facts[o.id] = o
		for _, c := range o.cancellations {
			if c.at < o.dueAt {
				early.broken++
			}
		}
	}
	want := map[string]int{}
	for sku, n := range initially {
		want[sku] = n
	}
	for _, o := range orders {
		f, ok := facts[o.id]
		switch {
		case !ok:
			missing.broken++
		case !accepted[o.id] && (f.status != "cancelled" || len(f.cancellations) != 1):
			unpaid.broken++
		case accepted[o.id] && (f.status != "paid" || len(f.cancellations) != 0):
			paid.broken++
		}
		if accepted[o.id] {
			for _, it := range o.items {
				want[it.sku] -= it.quantity
			}
		}
	}
	for sku, n := range want {
		if b.available[sku] != n {
			stock.broken++
		}
	}
	return []check{missing, unpaid, paid, early, stock, tasks}
}

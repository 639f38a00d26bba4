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
	sold      map[string]int
	// cancellations by order: also of orders that are not there any more
	cancellations map[string][]cancellation
}

// orderFacts is an order's row.
type orderFacts struct {
	id, status string
	due        time.Time
}

// cancellation is what a worker has written down.
type cancellation struct {
	worker  string
	crashes int
	at      time.Time
	late    time.Duration
}

// readBooks reads the tables. An order is due delay after it was made.
func (d *database) readBooks(ctx context.Context, delay time.Duration) (books, error) {
	b := books{available: map[string]int{}, sold: map[string]int{}, cancellations: map[string][]cancellation{}}
	err := d.each(ctx, "SELECT order_id, worker, crashes, at_ms, late_us FROM shop_cancellations", func(scan scanner) error {
		var id string
		var c cancellation
		var at, late int64
		err := scan(&id, &c.worker, &c.crashes, &at, &late)
		c.at, c.late = time.UnixMilli(at), time.Duration(late)*time.Microsecond
		b.cancellations[id] = append(b.cancellations[id], c)
		return err
	})
	if err != nil {
		return b, err
	}
	err = d.each(ctx, "SELECT order_id, status, CAST(created_at AS CHAR(19)) FROM shop_orders", func(scan scanner) error {
		var o orderFacts
		var text string
		if err := scan(&o.id, &o.status, &text); err != nil {
			return err
		}
		created, err := time.Parse(time.DateTime, text)
		o.due = created.Add(delay)
		b.orders = append(b.orders, o)
		return err
	})
	if err != nil {
		return b, err
	}
	for text, totals := range map[string]map[string]int{
		"SELECT sku, SUM(moved) FROM shop_stock GROUP BY sku":    b.available,
		"SELECT sku, SUM(quantity) FROM shop_sales GROUP BY sku": b.sold,
	} {
		if err := d.total(ctx, text, totals); err != nil {
			return b, err
		}
	}
	return b, nil
}

// counts reads how many orders there are of each status.
func (d *database) counts(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	err := d.total(ctx, "SELECT status, COUNT(*) FROM shop_orders GROUP BY status", counts)
	return counts, err
}

func (d *database) total(ctx context.Context, text string, totals map[string]int) error {
	return d.each(ctx, text, func(scan scanner) error {
		var name string
		var n int
		err := scan(&name, &n)
		totals[name] = n
		return err
	})
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

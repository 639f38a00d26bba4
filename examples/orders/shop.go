package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

const (
	// atOnce is how many orders share a transaction at most.
	atOnce = 50

	// forgetEvery is how often the shop "crashes" after it has stored an order and
	// before it tells the index. The workers' sweeps find such an order.
	forgetEvery = 50
)

// shop is the web shop: it takes orders. Its SQL is its own.
type shop struct {
	db       *database
	producer *core.Producer
	clock    shopClock
	placed   int             // orders that are stored
	forgot   map[string]bool // of them, those that the index was not told of, on purpose
}

// takeOrders stores orders when their time has come.
func (s *shop) takeOrders(ctx context.Context, orders []order) error {
	return everyTick(ctx, func() (over bool, err error) {
		n, _ := slices.BinarySearchFunc(orders, s.clock.now(), func(o order, now time.Time) int {
			return cmp.Or(o.placed.Compare(now), -1) // those at now too
		})
		for batch := range slices.Chunk(orders[:n], atOnce) {
			if err := s.place(ctx, batch); err != nil {
				return false, fmt.Errorf("take orders: %w", err)
			}
		}
		orders = orders[n:]
		return len(orders) == 0, nil
	})
}

// place stores orders with their items and takes their stock. That is all that
// there is to it: the order's row is what a worker will claim.
func (s *shop) place(ctx context.Context, orders []order) error {
	var entries []core.Entry
	var orderRows, itemRows, stockRows []any
	for _, o := range orders {
		orderRows = append(orderRows, o.id, dateTime(s.clock.createdAt(o)))
		for _, it := range o.items {
			itemRows = append(itemRows, o.id, it.sku, it.quantity)
			stockRows = append(stockRows, it.sku, -it.quantity)
		}
		if s.placed++; s.placed%forgetEvery == 0 {
			s.forgot[o.id] = true
		} else {
			entries = append(entries, core.Entry{ID: core.ID(o.id), Due: s.clock.due(o)})
		}
	}
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := s.db.change(ctx, tx, "INSERT INTO shop_orders (order_id, created_at) VALUES "+rows("(?, ?)", orderRows), orderRows...); err != nil {
			return err
		}
		if _, err := s.db.change(ctx, tx, "INSERT INTO shop_items (order_id, sku, quantity) VALUES "+rows("(?, ?, ?)", itemRows), itemRows...); err != nil {
			return err
		}
		_, err := s.db.change(ctx, tx, "INSERT INTO shop_stock (sku, moved) VALUES "+rows("(?, ?)", stockRows), stockRows...)
		return err
	})
	if err != nil {
		return err
	}
	// After the commit, tell the index. If that fails, the next sweep finds them.
	_ = s.producer.Track(ctx, entries...)
	return nil
}

// everyTick calls f again and again until it is over.
func everyTick(ctx context.Context, f func() (over bool, err error)) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if over, err := f(); over || err != nil {
			return err
		}
	}
}

// rows is the list of placeholders for as many rows as there are values for.
func rows(row string, values []any) string {
	n := len(values) / strings.Count(row, "?")
	return strings.TrimSuffix(strings.Repeat(row+", ", n), ", ")
}

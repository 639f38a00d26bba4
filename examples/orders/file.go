package main

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
)

//go:embed orders.csv
var ordersCSV string

// order is a line of the file.
type order struct {
	id     string
	placed time.Time
	paid   time.Time // when the customer pays or tries to; zero for never
	items  []item
}

type item struct {
	sku      string
	quantity int
}

// days are the first letters of the orders' numbers. The file's day has the first.
const days = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

const (
	ordersADay = 5000
	mostOrders = len(days) * ordersADay
	dayLength  = 4*time.Hour + 30*time.Minute // in which the file's orders come
)

// readOrders returns n orders (0: those of one day), by the time when they were
// placed. When the file's day is over, another one like it begins, with other
// numbers.
func readOrders(text string, n int) ([]order, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("orders.csv: %w", err)
	}
	lines = lines[1:] // the heading
	orders := make([]order, cmp.Or(n, len(lines)))
	for i := range orders {
		day, line := i/len(lines), i%len(lines)
		o, err := readOrder(lines[line])
		if err != nil {
			return nil, fmt.Errorf("orders.csv: line %d: %w", line+2, err)
		}
		o.id = days[day:day+1] + o.id[1:]
		later := time.Duration(day) * dayLength
		o.placed = o.placed.Add(later)
		if !o.paid.IsZero() {
			o.paid = o.paid.Add(later)
		}
		orders[i] = o
	}
	return orders, nil
}

func readOrder(fields []string) (o order, err error) {
	o.id = fields[0]
	if o.placed, err = time.Parse(time.RFC3339, fields[1]); err != nil {
		return o, err
	}
	if fields[2] != "" {
		if o.paid, err = time.Parse(time.RFC3339, fields[2]); err != nil {
			return o, err
		}
	}
	for _, text := range strings.Fields(fields[3]) {
		sku, count, _ := strings.Cut(text, ":")
		quantity, err := strconv.Atoi(count)
		if err != nil || quantity < 1 {
			return o, fmt.Errorf("item %q; want product:quantity", text)
		}
		o.items = append(o.items, item{sku, quantity})
	}
	return o, nil
}

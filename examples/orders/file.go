package main

import (
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

// readOrders returns the first n orders of the file (0: all), by the time when
// they were placed.
func readOrders(text string, n int) ([]order, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("orders.csv: %w", err)
	}
	lines = lines[1:] // the heading
	if n > 0 && n < len(lines) {
		lines = lines[:n]
	}
	orders := make([]order, len(lines))
	for i, line := range lines {
		if orders[i], err = readOrder(line); err != nil {
			return nil, fmt.Errorf("orders.csv: line %d: %w", i+2, err)
		}
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

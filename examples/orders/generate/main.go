// Generate writes the orders of a shop's day as CSV, the same ones each time:
//
//	go run ./examples/orders/generate > examples/orders/orders.csv
//
// The shop opens at 9 o'clock. Orders trickle in, jump after a newsletter at 10,
// and pile up around lunch. Most customers pay within minutes (a log-normal time,
// so that a few take very long), one in ten about when the 30 minutes that they have
// are over, and the others never.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	orders  = 5000
	allowed = 30 * time.Minute // to pay
	open    = 4*time.Hour + 30*time.Minute
)

var opening = time.Date(2025, time.November, 28, 9, 0, 0, 0, time.UTC)

var products = []string{
	"mug", "tea", "kettle", "coffee", "grinder", "filter", "spoon", "bowl", "plate", "glass", "carafe", "tray",
	"honey", "biscuit", "jam", "oats", "apron", "towel", "candle", "vase", "basket", "teapot", "whisk", "scale",
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	if err := write(out); err == nil {
		err = out.Flush()
		if err == nil {
			return
		}
	}
	fmt.Fprintln(os.Stderr, "generate: can't write")
	os.Exit(1)
}

type order struct {
	placed, paid time.Time
	items        string
}

func write(w io.Writer) error {
	random := rand.New(rand.NewPCG(20251128, 9))
	all := make([]order, orders)
	for i := range all {
		placed := opening.Add(arrival(random)).Truncate(time.Millisecond)
		all[i] = order{placed: placed, paid: payment(random, placed), items: items(random)}
	}
	slices.SortStableFunc(all, func(a, b order) int { return cmp.Compare(a.placed.UnixMilli(), b.placed.UnixMilli()) })
	if _, err := fmt.Fprintln(w, "order,placed,paid,items"); err != nil {
		return err
	}
	const layout = "2006-01-02T15:04:05.000Z"
	for i, o := range all {
		paid := ""
		if !o.paid.IsZero() {
			paid = o.paid.Format(layout)
		}
		if _, err := fmt.Fprintf(w, "A%05d,%s,%s,%s\n", i+1, o.placed.Format(layout), paid, o.items); err != nil {
			return err
		}
	}
	return nil
}

// arrival is when after opening an order comes.
func arrival(random *rand.Rand) time.Duration {
	for {
		var hours float64
		switch u := random.Float64(); {
		case u < 0.55:
			hours = random.Float64() * open.Hours()
		case u < 0.75: // the newsletter
			hours = 1 + random.ExpFloat64()*0.2
		default: // lunch
			hours = 3.5 + random.NormFloat64()*0.3
		}
		if d := time.Duration(hours * float64(time.Hour)); d >= 0 && d < open {
			return d
		}
	}
}

// payment is when an order is paid, zero for never.
func payment(random *rand.Rand, placed time.Time) time.Time {
	switch u := random.Float64(); {
	case u < 0.60: // half of them within 3 minutes, about one in fifty too late
		minutes := 3 * math.Exp(1.1*random.NormFloat64())
		return placed.Add(time.Duration(minutes * float64(time.Minute))).Truncate(time.Millisecond)
	case u < 0.70:
		return placed.Add(allowed + time.Duration(random.IntN(90_000)-45_000)*time.Millisecond)
	default:
		return time.Time{}
	}
}

// items is what an order is for, such as "mug:2 tea:1": one to five products.
func items(random *rand.Rand) string {
	var list []string
	for _, i := range random.Perm(len(products))[:1+random.IntN(5)] {
		list = append(list, fmt.Sprintf("%s:%d", products[i], 1+random.IntN(3)))
	}
	return strings.Join(list, " ")
}

package main

import "maps"

// check is a rule, and how many broke it.
type check struct {
	rule   string
	broken int
}

// audit holds the books against the file and against what the shop told its
// customers. initially is the stock of each product before the day.
//
// The rules are the same in all three modes. What a weaker mode doesn't promise,
// such as that no second handler is started, costs time; effects are exactly once
// everywhere, as they are in one transaction with the change of the order's row.
func audit(b books, l *ledger, orders []order, initially map[string]int) []check {
	missing := check{rule: "every order of the file is in the books, but for those that the shop deleted"}
	unpaid := check{rule: "every unpaid order was cancelled, exactly once"}
	paid := check{rule: "no paid order was touched"}
	gone := check{rule: "no order was touched that the customer or the shop had withdrawn"}
	early := check{rule: "no order was cancelled before its time"}
	stock := check{rule: "the stock of every product is what it was, less the paid orders"}
	open := check{rule: "no order is left open"}
	refused := check{"no payment was refused before the order's time was up", l.tooEarly}

	facts := map[string]orderFacts{}
	for _, o := range b.orders {
		facts[o.id] = o
		if o.status == "pending" || o.status == "processing" {
			open.broken++
		}
		for _, c := range b.cancellations[o.id] {
			if c.at.Before(o.due) {
				early.broken++
			}
		}
	}
	sold := map[string]int{}
	for _, o := range orders {
		f, ok := facts[o.id]
		times := len(b.cancellations[o.id])
		if ok == (l.gone[o.id] == deleted) {
			missing.broken++
			continue
		}
		switch {
		case l.paid[o.id]:
			if f.status != "completed" || times != 0 {
				paid.broken++
			}
			for _, it := range o.items {
				sold[it.sku] += it.quantity
			}
		case l.gone[o.id] == withdrawn:
			if f.status != "cancelled" || times != 0 {
				gone.broken++
			}
		case l.gone[o.id] == deleted:
			if times != 0 {
				gone.broken++
			}
		case f.status != "cancelled" || times != 1:
			unpaid.broken++
		}
	}
	want := maps.Clone(initially)
	for sku, n := range sold {
		want[sku] -= n
	}
	for sku, n := range want {
		if b.available[sku] != n || b.sold[sku] != sold[sku] {
			stock.broken++
		}
	}
	return []check{missing, unpaid, paid, gone, early, stock, open, refused}
}

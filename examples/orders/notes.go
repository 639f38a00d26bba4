package main

import (
	"maps"
	"slices"
	"sync"
)

// note is what the other processes tell the parent. What a process has told before
// it is killed arrives.
type note struct {
	What  what
	Order string
}

type what string

const (
	// By customers:
	paid         what = "paid"          // the payment was taken
	refused      what = "refused"       // a payment, since the order was cancelled
	refusedEarly what = "refused early" // the same before the order's time was up, which must not be
	withdrawn    what = "withdrawn"     // the customer has cancelled the order
	deleted      what = "deleted"       // the shop's staff has deleted the order
	// By workers:
	started  what = "started"  // a handler
	returned what = "returned" // the handler
	outrun   what = "outrun"   // somebody else had ended the order when the handler wanted to: rolled back
)

// handling is one start of a handler for an order.
type handling struct {
	worker   string
	returned bool
}

// ledger is what the parent has heard.
type ledger struct {
	mu       sync.Mutex
	paid     map[string]bool
	gone     map[string]what // withdrawn or deleted
	starts   map[string][]handling
	inHand   map[string]int // handlers that run, by worker
	killed   []string
	tooLate  int // payments refused
	tooEarly int // of those, before the order's time was up
	outrun   int
}

func newLedger() *ledger {
	return &ledger{
		paid: map[string]bool{}, gone: map[string]what{},
		starts: map[string][]handling{}, inHand: map[string]int{},
	}
}

// hear notes what a process tells.
func (l *ledger) hear(process string, n note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n.What {
	case paid:
		l.paid[n.Order] = true
	case refused:
		l.tooLate++
	case refusedEarly:
		l.tooLate++
		l.tooEarly++
	case withdrawn, deleted:
		l.gone[n.Order] = n.What
	case started:
		l.starts[n.Order] = append(l.starts[n.Order], handling{worker: process})
		l.inHand[process]++
	case returned:
		l.inHand[process]--
		for i := range l.starts[n.Order] {
			if h := &l.starts[n.Order][i]; h.worker == process {
				h.returned = true
			}
		}
	case outrun:
		l.outrun++
	}
}

// kill notes that a worker was killed.
func (l *ledger) kill(worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed = append(l.killed, worker)
	delete(l.inHand, worker)
}

// busiest returns the worker with the most handlers that run, and how many.
func (l *ledger) busiest() (worker string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.inHand)) {
		if l.inHand[name] > n {
			worker, n = name, l.inHand[name]
		}
	}
	return worker, n
}

func (l *ledger) paidSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.paid)
}

// startedAgain counts the orders for which handlers were started more than once.
func (l *ledger) startedAgain() (n int) {
	for _, s := range l.starts {
		if len(s) > 1 {
			n++
		}
	}
	return n
}

// takenOver tells whether worker ended an order that another one had in hand when
// it was killed.
func (l *ledger) takenOver(order, worker string) bool {
	return slices.ContainsFunc(l.starts[order], func(h handling) bool {
		return !h.returned && h.worker != worker && slices.Contains(l.killed, h.worker)
	})
}

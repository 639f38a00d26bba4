package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/examples/internal/lateness"
)

// report is what came of a run.
type report struct {
	orders, paid, cancelled int
	gone                    int // withdrawn or deleted
	tooLate                 int // payments that came after the cancellation
	outrun                  int // handlers that found the order ended by somebody else
	forgot, found           int // orders that the index was not told of; of those, cancelled
	again                   int // orders with more than one handler started
	takenOver               int // orders cancelled by another worker than one that was killed with it in hand
	killed                  []string
	day, took               time.Duration
	onTime, late            []time.Duration // lateness of the others and of those taken over
	checks                  []check
}

func newReport(b books, l *ledger, forgot map[string]bool, orders []order, initially map[string]int) report {
	r := report{
		orders: len(orders), paid: len(l.paid), gone: len(l.gone), tooLate: l.tooLate, outrun: l.outrun,
		forgot: len(forgot), again: l.startedAgain(), killed: l.killed,
		checks: audit(b, l, orders, initially),
	}
	for id, all := range b.cancellations {
		r.cancelled++
		if forgot[id] {
			r.found++
		}
		for _, c := range all {
			if c.crashes > 0 || l.takenOver(id, c.worker) {
				r.takenOver++
				r.late = append(r.late, c.late)
			} else {
				r.onTime = append(r.onTime, c.late)
			}
		}
	}
	return r
}

// failed tells whether a rule was broken.
func (r report) failed() bool {
	for _, c := range r.checks {
		if c.broken > 0 {
			return true
		}
	}
	return false
}

func (r report) print(w io.Writer) {
	fmt.Fprintln(w)
	line := func(label string, n int, remark string) {
		fmt.Fprintf(w, "  %-13s %6d   %s\n", label, n, remark)
	}
	line("orders", r.orders, fmt.Sprintf("%.1f hours in %.0f s", r.day.Hours(), r.took.Seconds()))
	line("paid", r.paid, "")
	line("cancelled", r.cancelled, "by the workers: not paid within 30 minutes; stock given back")
	line("withdrawn", r.gone, "by customers, or deleted by the shop")
	line("paid late", r.tooLate, "payments that came after the cancellation, and were refused")
	line("refused", r.outrun, "handlers whose order was paid or withdrawn while they were at it: rolled back")
	line("forgotten", r.forgot, fmt.Sprintf("orders that the index was not told of, on purpose; %d were to be cancelled, and sweeps found them", r.found))
	line("started again", r.again, "orders with more than one handler started")
	from := "nobody was killed"
	if len(r.killed) > 0 {
		from = "from " + strings.Join(r.killed, ", ") + ": killed"
	}
	line("taken over", r.takenOver, from)
	fmt.Fprintf(w, "\n  lateness      %v\n", lateness.Of(r.onTime))
	lateness.Histogram(w, r.onTime)
	fmt.Fprintln(w, "    (created_at has whole seconds: orders fall due together, more at once than there are slots)")
	fmt.Fprintf(w, "\n  taken over    %v\n", lateness.Of(r.late))
	fmt.Fprintln(w)
	for _, c := range r.checks {
		if c.broken > 0 {
			fmt.Fprintf(w, "  FAILED  %s: %d\n", c.rule, c.broken)
		} else {
			fmt.Fprintf(w, "  ok      %s\n", c.rule)
		}
	}
}

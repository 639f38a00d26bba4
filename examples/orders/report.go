package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dueclaim/dueclaim/examples/internal/lateness"
)

// report is what came of a day.
type report struct {
	orders, paid, cancelled int
	tooLate                 int // payments that came after the cancellation
	foundPaid               int // tasks that ran and found the order paid
	forgot                  int // of those, because the shop forgot to cancel the task
	takenOver               int // orders cancelled by another worker than the one that had claimed the task first
	victim                  string
	day, took               time.Duration
	onTime, late            []time.Duration // lateness of the others and of those taken over
	checks                  []check
}

func newReport(b books, s *shop, orders []order, initially map[string]int) report {
	r := report{
		orders: len(b.orders), paid: len(s.accepted), tooLate: s.tooLate, forgot: s.forgot, foundPaid: b.done,
		checks: audit(b, orders, s.accepted, initially),
	}
	r.checks = append(r.checks, check{"no payment was refused before the order's time was over", s.early})
	for _, o := range b.orders {
		if o.status == "cancelled" {
			r.cancelled++
		}
		for _, c := range o.cancellations {
			r.foundPaid--
			if c.takenOver {
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
		fmt.Fprintf(w, "  %-12s %6d   %s\n", label, n, remark)
	}
	line("orders", r.orders, fmt.Sprintf("%.1f hours in %.0f s", r.day.Hours(), r.took.Seconds()))
	line("paid", r.paid, "")
	line("cancelled", r.cancelled, "unpaid after 30 minutes; stock given back")
	line("paid late", r.tooLate, "payments that came after the cancellation, and were refused")
	line("found paid", r.foundPaid, fmt.Sprintf("tasks that ran and left a paid order alone; %d of them the shop forgot to cancel, on purpose", r.forgot))
	from := "nobody was killed"
	if r.victim != "" {
		from = "from " + r.victim + ", which was killed"
	}
	line("taken over", r.takenOver, from)
	fmt.Fprintf(w, "\n  lateness     %v\n", lateness.Of(r.onTime))
	lateness.Histogram(w, r.onTime)
	fmt.Fprintln(w, "    (in a rush more orders fall due at once than a disk commits one by one)")
	fmt.Fprintf(w, "\n  taken over   %v\n", lateness.Of(r.late))
	fmt.Fprintln(w)
	for _, c := range r.checks {
		if c.broken > 0 {
			fmt.Fprintf(w, "  FAILED  %s: %d\n", c.rule, c.broken)
		} else {
			fmt.Fprintf(w, "  ok      %s\n", c.rule)
		}
	}
}

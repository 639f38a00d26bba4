package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/internal/lateness"
)

// summary is what came of a run, as the store's table and the workers' records
// show it.
type summary struct {
	scheduled int
	completed int // done in the store
	lost      int // scheduled, and not both done in the store and finished by a handler
	twice     int // tasks with two accepted completions, or two runs under one token
	takenOver int // finished by another worker than the one that had claimed it first
	again     int // of those: the dead worker had finished it, but not yet recorded that

	victim        string // the killed worker
	victimRunning int    // what it had running, by its records
	took          time.Duration

	onTime, late []time.Duration // lateness of the others and of those taken over
}

// summarize counts. completed is the number of done tasks in the store.
func summarize(scheduled, completed int, records []record, victim string) summary {
	sum := summary{scheduled: scheduled, completed: completed, victim: victim}
	type run struct {
		id    core.ID
		token int64
	}
	runs := map[run]int{}            // how many handlers began under it
	completions := map[core.ID]int{} // accepted by the store
	first := map[core.ID]record{}    // the first finish in the files' order
	finishes := map[core.ID]int{}
	victims := map[run]bool{} // begun and not finished by the killed worker
	for _, r := range records {
		switch r.Event {
		case started:
			runs[run{r.ID, r.Token}]++
			if r.Worker == victim {
				victims[run{r.ID, r.Token}] = true
			}
		case finished:
			delete(victims, run{r.ID, r.Token})
			finishes[r.ID]++
			if f, ok := first[r.ID]; !ok || r.Token > f.Token {
				first[r.ID] = r
			}
		case accepted:
			completions[r.ID]++
		}
	}
	sum.victimRunning = len(victims)
	sum.lost = max(scheduled-completed, scheduled-len(first), 0)

	twice := map[core.ID]bool{}
	for r, n := range runs {
		if n > 1 {
			twice[r.id] = true
		}
	}
	for id, n := range completions {
		if n > 1 {
			twice[id] = true
		}
	}
	sum.twice = len(twice)

	for id, r := range first {
		if !r.TakenOver {
			sum.onTime = append(sum.onTime, r.lateness())
			continue
		}
		sum.takenOver++
		sum.late = append(sum.late, r.lateness())
		if finishes[id] > 1 {
			sum.again++
		}
	}
	return sum
}

// failed tells whether a promise was broken.
func (s summary) failed() bool { return s.lost > 0 || s.twice > 0 }

func (s summary) print(w io.Writer) {
	fmt.Fprintln(w)
	line := func(label string, n int, remark string) {
		fmt.Fprintf(w, "  %-12s %6d   %s\n", label, n, remark)
	}
	line("scheduled", s.scheduled, "")
	line("completed", s.completed, "by the store's table")
	line("lost", s.lost, "")
	line("ran twice", s.twice, "two accepted completions, or two runs under one token")
	from := "nobody was killed"
	if s.victim != "" {
		from = fmt.Sprintf("from %s, which was killed: it had claimed them and was running %d", s.victim, s.victimRunning)
	}
	line("taken over", s.takenOver, from)
	if s.again > 0 {
		line("", s.again, "of these it had finished, but could not record: they ran again, completed once")
	}
	fmt.Fprintf(w, "\n  lateness     %v\n", lateness.Of(s.onTime))
	lateness.Histogram(w, s.onTime)
	fmt.Fprintf(w, "\n  taken over   %v\n", lateness.Of(s.late))
	lateness.Histogram(w, s.late)
	verdict := "every task ran, and none was completed twice"
	if s.failed() {
		verdict = "FAILED: tasks were lost or ran twice"
	}
	fmt.Fprintf(w, "\n  %s; %.1f s\n", verdict, s.took.Seconds())
}

package conformance

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// benchBatches are the batch sizes that the benchmarks measure: a task on its
// own, and many at once.
var benchBatches = []int{1, 500}

// benchEntries is how many entries stand in a benchmarked index.
const benchEntries = 100_000

// BenchmarkIndex measures each method of a TimeIndex that holds 100,000 entries,
// in entries a second. open returns an empty index; it is called once a
// benchmark.
func BenchmarkIndex(b *testing.B, open func(b *testing.B) core.TimeIndex) {
	filled := func(b *testing.B) core.TimeIndex {
		idx := open(b)
		for i := 0; i < benchEntries; i += 1000 {
			if err := idx.Add(b.Context(), benchRow(i, 1000)); err != nil {
				b.Fatal(err)
			}
		}
		return idx
	}
	for _, size := range benchBatches {
		sized := func(name string, run func(b *testing.B, idx core.TimeIndex, round int) error) {
			b.Run(fmt.Sprintf("%s/batch=%d", name, size), func(b *testing.B) {
				idx := filled(b)
				rounds(b, "entries/s", size, func(round int) error { return run(b, idx, round) })
			})
		}
		sized("add", func(b *testing.B, idx core.TimeIndex, round int) error {
			return idx.Add(b.Context(), benchRow(benchEntries+round*size, size))
		})
		sized("add missing", func(b *testing.B, idx core.TimeIndex, _ int) error { // none is, as in most sweeps
			restorer, ok := idx.(core.Restorer)
			if !ok {
				b.Skip("not provided: Restorer")
			}
			return restorer.AddMissing(b.Context(), benchRow(0, size))
		})
		sized("due", func(b *testing.B, idx core.TimeIndex, _ int) error {
			_, err := idx.Due(b.Context(), endOfTime, size)
			return err
		})
		// There and back, so that there always is something to move.
		sized("move", func(b *testing.B, idx core.TimeIndex, round int) error {
			moves := make([]core.Move, size)
			for i, entry := range benchRow(0, size) {
				moves[i] = core.Move{ID: entry.ID, From: entry.Due, To: entry.Due.Add(time.Hour)}
				if round%2 == 1 {
					moves[i].From, moves[i].To = moves[i].To, moves[i].From
				}
			}
			return idx.Move(b.Context(), moves)
		})
		sized("add and remove", func(b *testing.B, idx core.TimeIndex, round int) error {
			entries := benchRow(benchEntries+round*size, size)
			if err := idx.Add(b.Context(), entries); err != nil {
				return err
			}
			return idx.Remove(b.Context(), entries)
		})
		sized("take", func(b *testing.B, idx core.TimeIndex, round int) error {
			taker, ok := idx.(core.Taker)
			if !ok {
				b.Skip("not provided: Taker")
			}
			until := base.Add(time.Duration(benchEntries+round) * time.Hour)
			_, _, err := taker.Take(b.Context(), until.Add(-time.Minute), until, size)
			return err
		})
	}
}

// benchRow returns n entries from the ith, a millisecond apart.
func benchRow(i, n int) []core.Entry {
	entries := make([]core.Entry, n)
	for k := range entries {
		entries[k] = core.Entry{ID: benchID(i + k), Due: at(i + k)}
	}
	return entries
}

func benchID(i int) core.ID { return core.ID(fmt.Sprintf("order-%09d", i)) }

// BenchmarkClaimer measures Claim, Extend, Settle and Waiting, and Insert where
// the claimer is a core.Store, in tasks a second. open returns a claimer without
// any task, once a benchmark; put makes rows of tasks, nil where Insert does.
func BenchmarkClaimer(b *testing.B, open func(b *testing.B) core.Claimer, put func(b *testing.B, c core.Claimer, tasks []core.Task)) {
	if put == nil {
		put = func(b *testing.B, c core.Claimer, tasks []core.Task) {
			if err := insertAll(b, c, tasks); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, size := range benchBatches {
		// before prepares a round, outside of the measured time.
		sized := func(name string, before func(b *testing.B, c core.Claimer, round int) []core.Grant,
			run func(b *testing.B, c core.Claimer, round int, grants []core.Grant) error) {
			b.Run(fmt.Sprintf("%s/batch=%d", name, size), func(b *testing.B) {
				c := open(b)
				rounds(b, "tasks/s", size, func(round int) error {
					var grants []core.Grant
					if before != nil {
						b.StopTimer()
						grants = before(b, c, round)
						b.StartTimer()
					}
					return run(b, c, round, grants)
				})
			})
		}
		pending := func(b *testing.B, c core.Claimer, round int) []core.Grant {
			put(b, c, benchTasks(round*size, size))
			return nil
		}
		granted := func(b *testing.B, c core.Claimer, round int) []core.Grant {
			pending(b, c, round)
			return benchClaim(b, c, round, size)
		}
		sized("insert", nil, func(b *testing.B, c core.Claimer, round int, _ []core.Grant) error {
			return insertAll(b, c, benchTasks(round*size, size))
		})
		sized("claim", pending, func(b *testing.B, c core.Claimer, round int, _ []core.Grant) error {
			benchClaim(b, c, round, size)
			return nil
		})
		sized("extend", granted, func(b *testing.B, c core.Claimer, _ int, grants []core.Grant) error {
			return c.Extend(b.Context(), grants, base.Add(2*leaseFor))
		})
		for _, outcome := range outcomes {
			sized("settle as "+outcome.String(), granted, func(b *testing.B, c core.Claimer, _ int, grants []core.Grant) error {
				list := make([]core.Settlement, len(grants))
				for i, g := range grants {
					list[i] = core.Settlement{Grant: g, Outcome: outcome, Due: dueOf(outcome, at(1))}
				}
				return c.Settle(b.Context(), at(1), list)
			})
		}
		sized("waiting", pending, func(b *testing.B, c core.Claimer, _ int, _ []core.Grant) error {
			_, err := c.Waiting(b.Context(), base, core.Entry{}, endOfTime, size)
			return err
		})
	}
}

// rounds runs a benchmark's rounds of size items each and reports items a
// second.
func rounds(b *testing.B, unit string, size int, run func(round int) error) {
	round := 0
	for b.Loop() {
		if err := run(round); err != nil {
			b.Fatal(err)
		}
		round++
	}
	b.ReportMetric(float64(round*size)/b.Elapsed().Seconds(), unit)
}

func benchTasks(i, n int) []core.Task {
	list := make([]core.Task, n)
	for k := range list {
		list[k] = core.Task{ID: benchID(i + k), Kind: "mail", Payload: make([]byte, 100), Due: base}
	}
	return list
}

func insertAll(b *testing.B, c core.Claimer, tasks []core.Task) error {
	store, ok := c.(core.Store)
	if !ok {
		b.Skip("not provided: Insert")
	}
	return store.Insert(b.Context(), core.Call{ID: rand.Text(), Now: base}, tasks)
}

// benchClaim claims the tasks of a round, each of which must be granted.
func benchClaim(b *testing.B, c core.Claimer, round, size int) []core.Grant {
	ids := make([]core.ID, size)
	for i := range ids {
		ids[i] = benchID(round*size + i)
	}
	got, err := c.Claim(b.Context(), ids, core.Lease{Holder: rand.Text(), Now: base, DueBy: base, Until: base.Add(leaseFor)})
	if err != nil {
		b.Fatal(err)
	}
	grants := make([]core.Grant, len(got))
	for i, claimed := range got {
		if claimed.Verdict != core.Granted {
			b.Fatalf("%q: %s, want Granted", claimed.ID, claimed.Verdict)
		}
		grants[i] = claimed.Grant
	}
	return grants
}

package mysqlclaim

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

const benchBatch = 500

// onEachBench runs a benchmark on every server; it reports rows a second.
func onEachBench(b *testing.B, run func(b *testing.B, s *Store)) {
	for _, server := range backends {
		for _, deletes := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/deletes=%t", server.name, deletes), func(b *testing.B) {
				s := fresh(b, server, Options{DeleteFinished: deletes})
				run(b, s)
				b.ReportMetric(float64(b.N)*benchBatch/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// batchNumber returns the nth batch of new tasks.
func batchNumber(n int) []core.Task { return someTasks(fmt.Sprintf("order-%06d", n), benchBatch) }

func BenchmarkInsert(b *testing.B) {
	onEachBench(b, func(b *testing.B, s *Store) {
		n := 0
		for b.Loop() {
			n++
			require.NoError(b, s.Insert(b.Context(), callNamed(fmt.Sprint("c", n)), batchNumber(n)))
		}
	})
}

// benchGranted is a benchmark of what happens to granted batches; step is timed
// alone.
func benchGranted(b *testing.B, step func(b *testing.B, s *Store, n int, granted []core.Claimed)) {
	onEachBench(b, func(b *testing.B, s *Store) {
		n := 0
		for b.Loop() {
			b.StopTimer()
			n++
			list := batchNumber(n)
			insert(b, s, list...)
			granted := grant(b, s, leaseOf(fmt.Sprint("h", n), base), idsOf(list)...)
			b.StartTimer()
			step(b, s, n, granted)
		}
	})
}

func BenchmarkClaim(b *testing.B) {
	onEachBench(b, func(b *testing.B, s *Store) {
		n := 0
		for b.Loop() {
			b.StopTimer()
			n++
			list := batchNumber(n)
			insert(b, s, list...)
			b.StartTimer()
			grant(b, s, leaseOf(fmt.Sprint("h", n), base), idsOf(list)...)
		}
	})
}

func BenchmarkExtend(b *testing.B) {
	benchGranted(b, func(b *testing.B, s *Store, _ int, granted []core.Claimed) {
		grants := make([]core.Grant, len(granted))
		for i, c := range granted {
			grants[i] = c.Grant
		}
		require.NoError(b, s.Extend(b.Context(), grants, at(90_000)))
	})
}

func BenchmarkSettleDone(b *testing.B) {
	benchGranted(b, func(b *testing.B, s *Store, _ int, granted []core.Claimed) {
		require.NoError(b, s.Settle(b.Context(), base, settlementsOf(granted, core.Done)))
	})
}

func BenchmarkSettleRetry(b *testing.B) {
	benchGranted(b, func(b *testing.B, s *Store, _ int, granted []core.Claimed) {
		require.NoError(b, s.Settle(b.Context(), base, settlementsOf(granted, core.Retry)))
	})
}

func settlementsOf(granted []core.Claimed, outcome core.Outcome) []core.Settlement {
	list := slices.Grow([]core.Settlement(nil), len(granted))
	for _, c := range granted {
		list = append(list, core.Settlement{Grant: c.Grant, Outcome: outcome, Due: base, Err: "connection refused"})
	}
	return list
}

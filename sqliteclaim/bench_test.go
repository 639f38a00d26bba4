package sqliteclaim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// BenchmarkClaimer measures every method.
func BenchmarkClaimer(b *testing.B) {
	conformance.BenchmarkClaimer(b, func(b *testing.B) core.Claimer { return open(b, file(b), sqliteclaim.Options{}) }, nil)
}

// A task's life in batches: insert, look, claim, settle. Each batch of each call
// is a commit with synchronous FULL.
func BenchmarkLifeOfATask(b *testing.B) {
	for _, batch := range []int{1, 100, 500} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			s := open(b, file(b), sqliteclaim.Options{DeleteFinished: true})
			backlog := ids(20_000)
			insertAt(b, s, "backlog", 10_000, backlog...)
			tasks, n := make([]core.ID, batch), 0
			for b.Loop() {
				for i := range tasks {
					tasks[i] = core.ID(fmt.Sprintf("task-%d-%d", i*7919%batch, n))
				}
				n++
				insertAt(b, s, fmt.Sprint("c", n), 0, tasks...)
				entries, err := s.Waiting(b.Context(), at(1), core.Entry{}, at(2), batch)
				require.NoError(b, err)
				require.Len(b, entries, batch)
				settlements := make([]core.Settlement, batch)
				for i, g := range grant(b, s, lease(fmt.Sprint("h", n), 1, 60), tasks...) {
					settlements[i] = core.Settlement{Grant: g, Outcome: core.Done}
				}
				require.NoError(b, s.Settle(b.Context(), at(2), settlements))
			}
			b.ReportMetric(float64(n*batch)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

package pgclaim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
)

// BenchmarkClaimer measures every method by either driver.
func BenchmarkClaimer(b *testing.B) {
	for _, d := range []driver{native, standard} {
		b.Run(d.name(), func(b *testing.B) {
			conformance.BenchmarkClaimer(b, func(b *testing.B) core.Claimer { return d.migrated(b, Options{}) }, nil)
		})
	}
}

// BenchmarkClaim measures claims of 500 of 100,000 rows, in rows a second.
func BenchmarkClaim(b *testing.B) {
	for _, d := range []driver{native, standard} {
		b.Run(d.name(), func(b *testing.B) {
			s := d.migrated(b, Options{})
			in, ids := tasks(100_000)
			for i := range in {
				in[i].Payload = make([]byte, 100)
			}
			require.NoError(b, s.Insert(b.Context(), call("c"), in))
			s.exec(b, "VACUUM ANALYZE dueclaim_tasks")
			const size = 500
			at := 0
			rows := 0
			var spent time.Duration
			for i := 0; b.Loop(); i++ {
				if at+size > len(ids) {
					at = 0
				}
				// each round takes over the lease of the one before
				l := lease(fmt.Sprintf("h%d", i), i*100)
				start := time.Now()
				claimed, err := s.Claim(b.Context(), ids[at:at+size], l)
				spent += time.Since(start)
				require.NoError(b, err)
				require.Equal(b, core.Granted, claimed[0].Verdict)
				at += size
				rows += size
			}
			b.ReportMetric(float64(rows)/spent.Seconds(), "rows/s")
		})
	}
}

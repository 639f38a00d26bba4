// Package lateness sums up how late tasks started.
package lateness

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Spread says how a number of latenesses are spread.
type Spread struct {
	N             int
	P50, P99, Max time.Duration
}

// Of returns the spread of values, in any order.
func Of(values []time.Duration) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{
		N: len(sorted), P50: rank(sorted, 50), P99: rank(sorted, 99), Max: sorted[len(sorted)-1],
	}
}

// rank returns the smallest value that at least percent of all don't exceed.
func rank(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// String is the spread in one line.
func (s Spread) String() string {
	if s.N == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %s  p99 %s  max %s  (of %d)", Text(s.P50), Text(s.P99), Text(s.Max), s.N)
}

// Text writes d with a sensible number of digits.
func Text(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

// bounds are the upper ends of the histogram's lines; the last line has none.
var bounds = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second,
}

// Histogram writes a line for each class of lateness, from the first to the last
// that has a value.
func Histogram(w io.Writer, values []time.Duration) {
	counts := make([]int, len(bounds)+1)
	for _, v := range values {
		i, exact := slices.BinarySearchFunc(bounds, v, cmp.Compare)
		if exact {
			i++ // a bound belongs to the class above it
		}
		counts[i]++
	}
	first := slices.IndexFunc(counts, func(n int) bool { return n > 0 })
	if first < 0 {
		return
	}
	last := first
	for i, n := range counts {
		if n > 0 {
			last = i
		}
	}
	const width = 40
	most := slices.Max(counts)
	for i := first; i <= last; i++ {
		label := fmt.Sprintf("over %v", bounds[len(bounds)-1])
		if i < len(bounds) {
			label = fmt.Sprintf("under %v", bounds[i])
		}
		bar := strings.Repeat("#", (counts[i]*width+most-1)/most)
		fmt.Fprintf(w, "    %-12s %6d  %s\n", label, counts[i], bar)
	}
}

package figures

import (
	"math"
	"slices"
	"strconv"
)

// Sample is one figure of each round, in the order in which they were measured.
type Sample []float64

// Median is the middle value, the mean of the two middle ones where their number is
// even, and NaN of nothing.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Min is the least value, NaN of nothing.
func (s Sample) Min() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Min(s)
}

// Max is the greatest value, NaN of nothing.
func (s Sample) Max() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Max(s)
}

// Percentile returns the value at or below which p of 100 parts of sorted lie, by
// the nearest rank; NaN of nothing.
func Percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Round keeps four digits of v, which is more than any measurement here is worth.
func Round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return v // it can't
	}
	return r
}

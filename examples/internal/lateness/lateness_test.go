package lateness

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSpreadIsByNearestRank(t *testing.T) {
	var values []time.Duration
	for i := 200; i >= 1; i-- {
		values = append(values, time.Duration(i)*time.Millisecond)
	}
	assert.Equal(t, Spread{N: 200, P50: 100 * time.Millisecond, P99: 198 * time.Millisecond, Max: 200 * time.Millisecond}, Of(values))
	one := 7 * time.Millisecond
	assert.Equal(t, Spread{N: 1, P50: one, P99: one, Max: one}, Of([]time.Duration{one}))
	assert.Equal(t, "none", Of(nil).String())
	assert.Equal(t, "p50 7.00 ms  p99 7.00 ms  max 7.00 ms  (of 1)", Of([]time.Duration{one}).String())
}

func TestTextHasASensibleNumberOfDigits(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0.00 ms": 0, "0.25 ms": 250 * time.Microsecond, "10 ms": 10 * time.Millisecond, "999 ms": 999 * time.Millisecond, "3.50 s": 3500 * time.Millisecond,
	} {
		assert.Equal(t, want, Text(d))
	}
}

func TestHistogramShowsTheClassesFromTheFirstToTheLast(t *testing.T) {
	var out bytes.Buffer
	Histogram(&out, []time.Duration{0, 0, time.Millisecond, 4 * time.Millisecond})
	assert.Equal(t, ""+
		"    under 1ms         2  ########################################\n"+
		"    under 2ms         1  ####################\n"+
		"    under 5ms         1  ####################\n", out.String())
	out.Reset()
	Histogram(&out, nil)
	assert.Empty(t, out.String())
	Histogram(&out, []time.Duration{time.Hour})
	assert.Equal(t, "    over 5s           1  ########################################\n", out.String())
}

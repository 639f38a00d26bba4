package claim_test

import (
	"fmt"
	"testing"
	"time"

	_ "time/tzdata" // zones also where the machine has none

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
)

var timeColumns = []claim.TimeColumn{
	{Name: "c", Kind: claim.UnixMilli},
	{Name: "c", Kind: claim.UnixSecond},
	{Name: "c", Kind: claim.DateTime, Zone: time.UTC},
	{Name: "c", Kind: claim.DateTime, Digits: 3, Zone: time.UTC},
	{Name: "c", Kind: claim.DateTime, Digits: 6, Zone: time.UTC},
	{Name: "c", Kind: claim.Timestamp},
	{Name: "c", Kind: claim.Timestamp, Digits: 6},
	{Name: "c", Kind: claim.Timestamp, Digits: 1},
}

func TestAValueIsNeverOnTheWrongSide(t *testing.T) {
	instants := []time.Time{
		time.UnixMilli(0), time.UnixMilli(-1), time.UnixMilli(1), time.UnixMilli(999),
		time.Date(1999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(2026, 3, 29, 0, 59, 59, 1, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 58, 1000, time.UTC),
	}
	for _, c := range timeColumns {
		for _, at := range instants {
			floor, ceil := c.Read(c.AtMost(at)), c.Read(c.AtLeast(at))
			about := fmt.Sprintf("%s with %d digits, %s", c.Kind, c.Digits, at.UTC())
			assert.False(t, floor.After(at), "AtMost, %s: %s", about, floor)
			assert.False(t, ceil.Before(at), "AtLeast, %s: %s", about, ceil)
			assert.Less(t, at.Sub(floor), c.Step(), about)
			assert.Less(t, ceil.Sub(at), c.Step(), about)
			assert.Equal(t, c.AtMost(ceil), c.AtLeast(ceil), "a value is its own, %s", about)
		}
	}
}

func TestTextHasTheColumnsDigits(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	for digits, want := range map[int]string{
		0: "2030-01-02 03:04:05", 1: "2030-01-02 03:04:05.6", 3: "2030-01-02 03:04:05.678", 6: "2030-01-02 03:04:05.678901",
	} {
		c := claim.TimeColumn{Name: "c", Kind: claim.DateTime, Zone: time.UTC, Digits: digits}
		assert.Equal(t, want, c.Text(c.AtMost(at)))
	}
}

func TestAZonesClockIsWrittenAndRead(t *testing.T) {
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	require.NoError(t, err)
	c := claim.TimeColumn{Name: "c", Kind: claim.DateTime, Zone: kolkata}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	assert.Equal(t, "2030-01-02 08:34:05", c.Text(c.AtLeast(at)))
	assert.Equal(t, at, c.Read(c.AtLeast(at)))
	assert.Equal(t, c.AtLeast(at), c.AtMost(at))
}

// In Berlin the clock goes from 03:00 back to 02:00 at 01:00 UTC on 2026-10-25.
func TestInAnHourThatComesTwiceNothingIsEarly(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	c := claim.TimeColumn{Name: "c", Kind: claim.DateTime, Zone: berlin}
	change := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)
	for d := -3 * time.Hour; d <= 3*time.Hour; d += 7 * time.Minute {
		at := change.Add(d)
		// A row that is due at `due` by its clock: claimed at `at` only where due is over
		// however the clock is meant.
		for e := -3 * time.Hour; e <= 3*time.Hour; e += 11 * time.Minute {
			due := c.Read(c.AtLeast(change.Add(e)))
			assert.False(t, due.Before(change.Add(e)), "the later of two meanings")
			if c.AtLeast(change.Add(e)) <= c.AtMost(at) {
				assert.False(t, due.After(at), "%s is taken at %s, before it is due", due, at)
			}
			if c.AtLeast(change.Add(e)) < c.Below(at) {
				assert.True(t, due.Before(at), "a lease until %s is taken for over at %s", due, at)
			}
		}
	}
	assert.Equal(t, "2026-10-25 01:59:59", c.Text(c.AtMost(change.Add(-30*time.Minute))), "02:30 will come once more")
	assert.Equal(t, "2026-10-25 02:30:00", c.Text(c.AtMost(change.Add(30*time.Minute))))
	assert.Equal(t, "2026-10-25 01:30:00", c.Text(c.AtMost(change.Add(-90*time.Minute))))
	spring := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC) // 02:00 becomes 03:00
	for d := -2 * time.Hour; d <= 2*time.Hour; d += 13 * time.Minute {
		at := spring.Add(d)
		assert.Equal(t, at, c.Read(c.AtLeast(at)))
		assert.Equal(t, c.AtLeast(at), c.AtMost(at))
		if d != 0 { // then rows of the hour that is left out are meant, too
			assert.Equal(t, c.AtLeast(at), c.Below(at))
		}
	}
}

// changes are moments at which a zone's clock is put forward or back.
var changes = map[string][]time.Time{
	"Europe/Berlin":       {time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
	"America/New_York":    {time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)},
	"Australia/Lord_Howe": {time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC), time.Date(2026, 10, 3, 15, 30, 0, 0, time.UTC)}, // by half an hour
	"Pacific/Apia":        {time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC)},                                               // by a whole day
}

// A page of a sweep goes on behind the last value of the one before: by a clock that
// repeats an hour or leaves one out it must neither skip rows nor meet them again.
func TestValuesReadInTheOrderOfTheColumn(t *testing.T) {
	for name, ats := range changes {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for _, change := range ats {
			for _, digits := range []int{0, 3} {
				c := claim.TimeColumn{Name: "c", Kind: claim.DateTime, Zone: zone, Digits: digits}
				var values []int64 // all that the column may hold, also what the clock leaves out
				middle := c.AtLeast(change)
				for d := -26 * time.Hour; d <= 26*time.Hour; d += 10 * time.Minute {
					values = append(values, middle+d.Microseconds())
				}
				for i, v := range values[1:] {
					require.False(t, c.Read(v).Before(c.Read(values[i])), "%s: %s reads as %s, after %s as %s", name, c.Text(v), c.Read(v), c.Text(values[i]), c.Read(values[i]))
				}
				for d := -25 * time.Hour; d <= 25*time.Hour; d += 10 * time.Minute {
					for _, at := range []time.Time{change.Add(d - time.Millisecond), change.Add(d), change.Add(d + time.Millisecond)} {
						for _, v := range values {
							require.Equal(t, c.Read(v).Before(at), v < c.Below(at), "%s: %s, which reads as %s, is before %s", name, c.Text(v), c.Read(v), at)
							if v <= c.AtMost(at) {
								require.False(t, c.Read(v).After(at), "%s: %s, which reads as %s, is due at %s", name, c.Text(v), c.Read(v), at)
							}
						}
					}
				}
			}
		}
	}
}

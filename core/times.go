package core

import (
	"fmt"
	"time"
)

// The due times that dueclaim stores: whole milliseconds of UTC from the start
// of 1970 up to, not including, the year 10000. A Redis score (a float64) and
// a BIGINT both hold them exactly.
var (
	minDue = time.UnixMilli(0).UTC()
	endDue = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// CheckDue returns nil or an error (ErrInvalid) when due, rounded up to the
// millisecond, is outside 1970 through 9999. The zero time is refused like any
// other instant before 1970, with a hint.
func CheckDue(due time.Time) error {
	if due.IsZero() {
		return fmt.Errorf("%w: due time is zero; set it, for example to time.Now() for at once", ErrInvalid)
	}
	if up := CeilMilli(due); up.Before(minDue) || !up.Before(endDue) {
		return fmt.Errorf("%w: due time %s is outside 1970 through 9999", ErrInvalid, due.Format(time.RFC3339Nano))
	}
	return nil
}

// CeilMilli returns t in UTC, without a monotonic reading, rounded up to the
// millisecond. Due times and lease ends are rounded this way, so that nothing
// starts early.
func CeilMilli(t time.Time) time.Time {
	down := FloorMilli(t)
	if down.Equal(t) {
		return down
	}
	return down.Add(time.Millisecond)
}

// FloorMilli returns t in UTC, without a monotonic reading, rounded down to the
// millisecond. Instants to compare with (now, DueBy) are rounded this way.
func FloorMilli(t time.Time) time.Time {
	t = t.Round(0).UTC() // strip the monotonic reading before arithmetic
	return t.Add(-time.Duration(t.Nanosecond() % int(time.Millisecond)))
}

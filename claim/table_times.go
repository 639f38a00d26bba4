package claim

import (
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// TimeColumn is a column that holds an instant.
type TimeColumn struct {
	Name string
	Kind TimeKind
	// Digits is how many digits of the second's fraction a DateTime or Timestamp
	// column keeps, 0 to 6: the n of DATETIME(n). Postgres types without (n) have 6.
	// dueclaim rounds to it before it writes, up or down as is safe.
	Digits int
	// Zone is the zone whose wall clock a DateTime column shows, which nothing but the
	// user's own statements decides: it must be given for DateTime, and only there. In
	// a zone with summer time, times in the hour that is shown twice are taken as the
	// later ones, and those in the hour that is left out as its end. With time.Local
	// all processes on the table must have the same zone.
	Zone *time.Location
}

// TimeKind is how a column holds an instant.
type TimeKind uint8

// The kinds of time columns.
const (
	// UnixMilli: an integer of 64 bits, milliseconds since 1970.
	UnixMilli TimeKind = iota
	// UnixSecond: an integer, seconds since 1970.
	UnixSecond
	// DateTime: a wall clock: MySQL DATETIME(n), Postgres timestamp(n), SQLite text
	// as its datetime function writes it ("2030-01-02 03:04:05", with Digits 3 also
	// ".678").
	DateTime
	// Timestamp: an instant: MySQL TIMESTAMP(n), Postgres timestamptz(n). Not on
	// SQLite.
	Timestamp
)

// String returns the kind's name.
func (k TimeKind) String() string {
	switch k {
	case UnixMilli:
		return "milliseconds since 1970"
	case UnixSecond:
		return "seconds since 1970"
	case DateTime:
		return "date and time"
	case Timestamp:
		return "timestamp"
	default:
		return "TimeKind(?)"
	}
}

// Step is the smallest difference that the column can hold.
func (c TimeColumn) Step() time.Duration {
	switch c.Kind {
	case UnixMilli:
		return time.Millisecond
	case UnixSecond:
		return time.Second
	}
	step := time.Second
	for range c.Digits {
		step /= 10
	}
	return step
}

// Round rounds t to what the column can hold, up or down.
func (c TimeColumn) Round(t time.Time, up bool) time.Time {
	r := t.Truncate(c.Step()) // exact from year 1, so also before 1970
	if up && r.Before(t) {
		r = r.Add(c.Step())
	}
	return r.UTC()
}

// AtMost is the latest value of the column that is surely not after t: what a
// "column <= …" compares with. A value is what the column's integer holds, or,
// for DateTime and Timestamp, the microseconds since 1970 that its clock shows.
func (c TimeColumn) AtMost(t time.Time) int64 {
	t = c.Round(t, false)
	if c.Kind == DateTime && c.Zone != nil {
		t = c.Round(beforeRepeated(t, c.Zone), false)
	}
	return c.value(t)
}

// Below is the value below which all are surely before t, and no other is: what a
// "column < …" compares with to find out whether a lease is over, or a "column >= …"
// for what is not before t.
func (c TimeColumn) Below(t time.Time) int64 {
	if c.Kind != DateTime || c.Zone == nil {
		return c.AtLeast(t)
	}
	if first := beforeRepeated(t, c.Zone); first.Before(t) {
		t = first.Add(time.Microsecond)
	}
	t = c.Round(t, true)
	return clock(t, c.Zone) - skipped(t, c.Zone).Microseconds()
}

// AtLeast is the earliest value of the column that is not before t: what is
// written for a due time or a lease's end.
func (c TimeColumn) AtLeast(t time.Time) int64 { return c.value(c.Round(t, true)) }

// beforeRepeated is t, or, where the zone's clock will show the same time once
// more, the moment before the clock showed it for the first time: a row that
// says so may mean the second.
func beforeRepeated(t time.Time, zone *time.Location) time.Time {
	local := t.In(zone)
	_, end := local.ZoneBounds()
	if end.IsZero() {
		return t
	}
	_, before := local.Zone()
	_, after := end.In(zone).Zone()
	repeated := time.Duration(before-after) * time.Second
	if first := end.Add(-repeated); repeated > 0 && !t.Before(first) {
		return first.Add(-time.Microsecond)
	}
	return t
}

// skipped is how much the zone's clock leaves out at t, where it is put forward just
// then, else 0: rows that say something in between mean t.
func skipped(t time.Time, zone *time.Location) time.Duration {
	start, _ := t.In(zone).ZoneBounds()
	if !start.Equal(t) {
		return 0
	}
	return max(0, time.Duration(clock(t, zone)-1-clock(t.Add(-time.Microsecond), zone))*time.Microsecond)
}

func (c TimeColumn) value(t time.Time) int64 {
	switch c.Kind {
	case UnixMilli:
		return t.UnixMilli()
	case UnixSecond:
		return t.Unix()
	}
	if c.Kind == DateTime && c.Zone != nil {
		return clock(t, c.Zone)
	}
	return t.UnixMicro()
}

// clock is what a zone's clock shows at t, in microseconds since its 1970.
func clock(t time.Time, zone *time.Location) int64 {
	_, offset := t.In(zone).Zone()
	return t.UnixMicro() + int64(offset)*1e6
}

// Text writes a value of a DateTime or Timestamp column:
// "2030-01-02 03:04:05", with as many digits of a fraction as the column has.
func (c TimeColumn) Text(value int64) string {
	layout := "2006-01-02 15:04:05"
	if c.Digits > 0 {
		layout += ".000000"[:c.Digits+1]
	}
	return time.UnixMicro(value).UTC().Format(layout)
}

// Integer tells whether the column holds an integer.
func (c TimeColumn) Integer() bool { return c.Kind == UnixMilli || c.Kind == UnixSecond }

// Read is the instant of a column's value. An ambiguous one is the later; one that
// its zone's clock leaves out is the moment at which it is put forward. So a later
// value never reads as an earlier instant.
func (c TimeColumn) Read(value int64) time.Time {
	switch c.Kind {
	case UnixMilli:
		return time.UnixMilli(value).UTC()
	case UnixSecond:
		return time.Unix(value, 0).UTC()
	}
	t := time.UnixMicro(value).UTC()
	if c.Kind == Timestamp || c.Zone == nil {
		return t
	}
	local := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), c.Zone)
	start, end := local.ZoneBounds()
	if shown := clock(local, c.Zone); shown > value { // left out: time.Date goes by either of two offsets
		return start.UTC()
	} else if shown < value {
		return end.UTC()
	}
	// Of an ambiguous one it may give either; the other is the zone's change away.
	if !end.IsZero() {
		_, before := local.Zone()
		_, after := end.In(c.Zone).Zone()
		if later := local.Add(time.Duration(before-after) * time.Second); later.After(local) && clock(later, c.Zone) == value {
			local = later
		}
	}
	return local.UTC()
}

func (c TimeColumn) check(role string) error {
	if c.Name == "" {
		if c != (TimeColumn{}) {
			return fmt.Errorf("%w: %s has no column name", core.ErrInvalid, role)
		}
		return nil
	}
	if err := checkColumn(role, c.Name); err != nil {
		return err
	}
	switch {
	case c.Kind > Timestamp:
		return fmt.Errorf("%w: column %s (%s): the kind is %d, want UnixMilli, UnixSecond, DateTime or Timestamp", core.ErrInvalid, c.Name, role, c.Kind)
	case c.Digits < 0 || c.Digits > 6 || c.Digits > 0 && c.Kind < DateTime:
		return fmt.Errorf("%w: column %s (%s): Digits is %d; want 0 to 6, and 0 for an integer", core.ErrInvalid, c.Name, role, c.Digits)
	case c.Zone != nil && c.Kind != DateTime:
		return fmt.Errorf("%w: column %s (%s): Zone is for DateTime only", core.ErrInvalid, c.Name, role)
	case c.Kind == DateTime && c.Zone == nil:
		return fmt.Errorf("%w: column %s (%s): Zone is missing: a DateTime is what a wall clock shows, and only your statements say whose. "+
			"Write Zone: time.UTC if they write UTC, else the zone that they write (for a time.Time that go-sql-driver/mysql is passed: the DSN's loc). Verify compares it with what the session writes", core.ErrInvalid, c.Name, role)
	}
	return nil
}

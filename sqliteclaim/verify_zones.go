package sqliteclaim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// asItIs is a modifier of SQLite's that changes nothing.
const asItIs = "+0 seconds"

// zones looks by which clock what is filled in is written: the column's DEFAULT, and a
// time.Time that a statement of the user's passes to the driver.
func (v *verification) zones(ctx context.Context) error {
	for _, part := range v.t.Columns() {
		c, ok := v.d.column(part.Name)
		if !ok || part.Time == nil || part.Time.Kind != claim.DateTime || part.Role == "Lease" {
			continue
		}
		zone := part.Time.Zone
		if _, changes, err := v.clock(ctx, zone, asItIs); err != nil {
			return err
		} else if changes {
			v.fs.Add(claim.Advice, "summer-time", c.name, fmt.Sprintf("%s: clocks of its Zone, %s, show one hour twice a year: a row that is due in it is taken as the later", part.Role, zone), "hold times in UTC")
		}
		if err := v.defaultClock(ctx, part, c); err != nil {
			return err
		}
		if err := v.driverClock(ctx, part, c); err != nil {
			return err
		}
	}
	return nil
}

// defaultClock judges the DEFAULT: SQLite's own now is UTC, or with localtime the clock
// of the process that inserts.
func (v *verification) defaultClock(ctx context.Context, part claim.Column, c column) error {
	const code = "session-zone"
	zone, text := part.Time.Zone, strings.ToLower(c.defaults)
	local := strings.Contains(text, "localtime")
	if !local && !strings.Contains(text, "current_timestamp") && !strings.Contains(text, "'now'") {
		return nil
	}
	modifier, clock := asItIs, "UTC"
	if local {
		modifier, clock = "localtime", "the zone of the process that inserts"
	}
	by, _, err := v.clock(ctx, zone, modifier)
	switch {
	case err != nil:
		return err
	case by != 0:
		v.fs.Add(claim.Fault, code, c.name, fmt.Sprintf("%s: the DEFAULT %s is in %s, and the mapped Zone is %s: it is read as another instant, by %s", part.Role, c.defaults, clock, zone, by.Abs()),
			"map the Zone that the DEFAULT is in, or have every INSERT name the column")
	case local:
		v.fs.Add(claim.Warning, code, c.name, fmt.Sprintf("%s: the DEFAULT %s is in %s, and the mapped Zone is %s: in a process with another zone it is another instant", part.Role, c.defaults, clock, zone),
			"have the DEFAULT in UTC, and map UTC")
	}
	return nil
}

// clock is how far SQLite's clock is ahead of that of zone, in the first month of a year
// in which they differ, and whether zone's is put forward and back.
func (v *verification) clock(ctx context.Context, zone *time.Location, modifier string) (by time.Duration, changes bool, err error) {
	begin := time.Now().Truncate(time.Second)
	ahead := func(at time.Time) int64 { _, seconds := at.In(zone).Zone(); return int64(seconds) }
	for month := range 12 {
		at := begin.AddDate(0, month, 0)
		changes = changes || ahead(at) != ahead(begin)
		var shown int64
		if err := v.conn.QueryRowContext(ctx, "SELECT CAST(strftime('%s', ?1, 'unixepoch', ?2) AS INTEGER)", at.Unix(), modifier).Scan(&shown); err != nil {
			return 0, false, err
		}
		if by == 0 {
			by = time.Duration(shown-at.Unix()-ahead(at)) * time.Second
		}
	}
	return by, changes, nil
}

// driverClock looks what the driver makes of a time.Time: texts of the wrong form are
// never claimed, so that the user must write another.
func (v *verification) driverClock(ctx context.Context, part claim.Column, c column) error {
	var kind, text string
	if err := v.conn.QueryRowContext(ctx, "SELECT typeof(x), CAST(x AS TEXT) FROM (SELECT ?1 AS x)", time.Now()).Scan(&kind, &text); err != nil {
		return err
	}
	if _, ok := readClock(text, part.Time.Zone); kind != "text" || !ok {
		v.fs.Add(claim.Advice, "driver-zone", c.name, fmt.Sprintf("%s: the driver writes a time.Time of this process as %s %q, which is no time of the column's: such a row is never claimed", part.Role, kind, text),
			"pass a text to your statements: that of the claim.TimeColumn's Text(AtLeast(t))")
	}
	return nil
}

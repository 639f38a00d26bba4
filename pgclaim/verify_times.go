package pgclaim

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// clockCall is what a default says that asks for the session's time.
var clockCall = regexp.MustCompile(`(?i)\b(now|clock_timestamp|statement_timestamp|transaction_timestamp)\(\)|\b(CURRENT_TIMESTAMP|LOCALTIMESTAMP)\b`)

// time judges a column that holds an instant.
func (v *verifier) time(p claim.Column, c attribute) {
	mend := ""
	if c.Base == "int2" || c.Base == "int4" {
		mend = v.alter(c.Name, "TYPE bigint")
	}
	words := map[claim.TimeKind]string{
		claim.UnixMilli: "bigint (UnixMilli)", claim.UnixSecond: "integer or bigint (UnixSecond)",
		claim.DateTime: "timestamp without time zone (DateTime)", claim.Timestamp: "timestamp with time zone (Timestamp)",
	}[p.Time.Kind]
	if !v.want(p, c, timeTypes[p.Time.Kind], words, mend) {
		return
	}
	if p.Time.Kind == claim.UnixSecond || !p.Time.Integer() {
		v.fraction(p, c)
	}
	if p.Time.Kind == claim.DateTime {
		v.clock(p, c)
	}
}

// fraction judges how much of a second the column keeps.
func (v *verifier) fraction(p claim.Column, c attribute) {
	keeps := 6
	if c.Modifier >= 0 {
		keeps = c.Modifier
	}
	name, _, _ := strings.Cut(c.BaseType, " ")
	finer := v.alter(c.Name, fmt.Sprintf("TYPE %s(3)%s", name, strings.TrimPrefix(c.BaseType, name)))
	integer := p.Time.Integer()
	switch late := "tasks run up to a second late"; {
	case !integer && p.Time.Digits > keeps:
		v.fault("time-digits", c.Name, fmt.Sprintf("the column (%s) keeps %d digits of the second's fraction and Digits is %d: what is read differs from what was written", p.Role, keeps, p.Time.Digits),
			v.alter(c.Name, fmt.Sprintf("TYPE %s(%d)%s", name, p.Time.Digits, strings.TrimPrefix(c.BaseType, name))))
	case p.Role == "Updated" && v.def.Mode() == claim.StatusUpdated && p.Time.Digits == 0:
		mend := fmt.Sprintf("map Updated.Digits as %d", keeps)
		if integer {
			mend = ""
		} else if keeps == 0 {
			mend = finer + ", and map Updated.Digits as 3"
		}
		v.advise("time-without-fraction", c.Name, "the fence (Updated) has whole seconds: a row is claimed once a second at most", mend)
	case !strings.HasPrefix(p.Role, "Due."):
	case integer:
		v.advise("time-without-fraction", c.Name, fmt.Sprintf("the column (%s) has whole seconds: %s", p.Role, late), "")
	case keeps == 0:
		v.advise("time-without-fraction", c.Name, fmt.Sprintf("the column (%s) has whole seconds: %s", p.Role, late), finer)
	case p.Time.Digits == 0:
		v.advise("time-without-fraction", c.Name, fmt.Sprintf("the column (%s) is mapped with whole seconds: %s", p.Role, late), fmt.Sprintf("map %s.Digits as %d", p.Role, min(keeps, 3)))
	}
}

// clock judges whether everybody means the same instant by what the column shows: the
// session, whose now() there is that of its own clock, and the driver, which writes a
// time.Time by the clock of its own zone. Where they don't, a row is due hours too early
// or too late, and nothing else ever says so.
func (v *verifier) clock(p claim.Column, c attribute) {
	if p.Role == "Lease" { // nobody else writes it
		return
	}
	judge := v.fault
	if p.Role == "Updated" && v.def.Mode() != claim.StatusUpdated {
		judge = v.warn // dueclaim doesn't read it
	}
	zone := p.Time.Zone
	shows := fmt.Sprintf("the column (%s) shows the clock of %s", p.Role, zone)
	if by := apart(v.catalog.Offsets, zone); by != 0 {
		byDefault := c.Default != nil && clockCall.MatchString(*c.Default)
		reason := fmt.Sprintf("%s and the session's time zone is %s", shows, v.catalog.Zone)
		switch {
		case byDefault && (strings.Contains(*c.Default, "timezone(") || strings.Contains(*c.Default, "AT TIME ZONE")):
		case byDefault:
			judge("session-zone", c.Name, fmt.Sprintf("%s: its default %s is %s", reason, *c.Default, awry(by)), v.alter(c.Name, fmt.Sprintf("SET DEFAULT (now() AT TIME ZONE '%s')", zone)))
		default:
			judge("session-zone", c.Name, fmt.Sprintf("%s: now(), in a statement of yours that writes it there, is %s", reason, awry(by)),
				fmt.Sprintf("map the zone that the values are in as %s.Zone, or ALTER ROLE %s SET TimeZone = '%s', or make the column timestamptz", p.Role, v.catalog.Role, zone))
		}
	}
	if by := apart(v.catalog.Written, zone); by != 0 {
		judge("driver-zone", c.Name, fmt.Sprintf("%s and the driver writes a time.Time by its own zone, which in this process is %s: time.Now() there is %s", shows, time.Local, awry(by)),
			fmt.Sprintf("set TZ, or time.Local as the first thing in main, to that of the column (%s), and let every time that you pass be in it; or make the column timestamptz", zone))
	}
	for _, o := range v.catalog.Offsets {
		if at := v.catalog.Offsets[0].At; ahead(zone, o.At) != ahead(zone, at) {
			v.advise("summer-time", c.Name, fmt.Sprintf("the column (%s) shows the clock of %s, which shows one hour twice a year: a row that is due in it is taken as the later", p.Role, zone), "hold times in UTC")
			return
		}
	}
}

// apart is by how many seconds a clock is ahead of that of zone, at the first instant at
// which they differ.
func apart(clock []zoneOffset, zone *time.Location) int64 {
	for _, o := range clock {
		if by := o.Seconds - ahead(zone, o.At); by != 0 {
			return by
		}
	}
	return 0
}

func ahead(zone *time.Location, at int64) int64 {
	_, seconds := time.Unix(at, 0).In(zone).Zone()
	return int64(seconds)
}

// awry says what becomes of a time of a clock that is ahead by so many seconds.
func awry(by int64) string {
	if by < 0 {
		return fmt.Sprintf("%s too early", time.Duration(-by)*time.Second)
	}
	return fmt.Sprintf("%s too late", time.Duration(by)*time.Second)
}

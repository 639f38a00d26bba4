package pgclaim

import (
	"fmt"
	"regexp"
	"strings"

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

// clock warns where the session's clock isn't the column's: now() there is
// another instant than dueclaim takes it for.
func (v *verifier) clock(p claim.Column, c attribute) {
	if v.catalog.sameZone(p.Time.Zone) {
		return
	}
	zone := "UTC"
	if p.Time.Zone != nil {
		zone = p.Time.Zone.String()
	}
	byDefault := c.Default != nil && clockCall.MatchString(*c.Default)
	if byDefault && (strings.Contains(*c.Default, "timezone(") || strings.Contains(*c.Default, "AT TIME ZONE")) {
		return
	}
	reason := fmt.Sprintf("the column (%s) shows the clock of %s and the session's time zone is %s", p.Role, zone, v.catalog.Zone)
	mend := fmt.Sprintf("map %s.Zone, or ALTER ROLE %s SET TimeZone = '%s', or make the column timestamptz", p.Role, v.catalog.Role, zone)
	switch {
	case byDefault:
		v.warn("session-zone", c.Name, reason+": its default "+*c.Default+" is off by the difference", v.alter(c.Name, fmt.Sprintf("SET DEFAULT (now() AT TIME ZONE '%s')", zone)))
	case p.Role != "Lease":
		v.warn("session-zone", c.Name, reason+": a statement of yours that writes now() there is off by the difference", mend)
	}
}

package mysqlclaim

import (
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// zones judges whether everybody means the same instant by what a clock shows:
// the column's Zone, the session (NOW(), CURRENT_TIMESTAMP, all TIMESTAMPs) and
// the driver, whose loc matters only where parseTime shows that times go through
// it.
func (v *verifier) zones() {
	session := v.zoneName()
	for _, col := range v.t.def.Columns() {
		f := v.c.column(col.Name)
		if col.Time == nil || f == nil || f.data != "datetime" && f.data != "timestamp" {
			continue
		}
		const code = "session-zone"
		switch col.Time.Kind {
		case claim.DateTime:
			zone := time.UTC
			if col.Time.Zone != nil {
				zone = col.Time.Zone
			}
			if by := v.sessionApart(zone); by != 0 {
				v.warn(code, col.Name, fmt.Sprintf("the column's Zone is %s, and the session's is %s, %s ahead: what NOW() or a default writes is read as another instant", zone, session, by),
					fmt.Sprintf("set the Zone that the values are in, or time_zone in the DSN (time_zone='+00:00' for UTC, which this session isn't in for %s)", zone))
			}
			if by := v.driverApart(zone); by != 0 {
				v.warn(code, col.Name, fmt.Sprintf("the column's Zone is %s, and the driver's loc is %s, %s ahead: times that your program passes to it are read as other instants", zone, v.c.loc, by),
					"set loc in the DSN and Zone to the zone that the values are in")
			}
			if v.changes(zone) {
				v.advise("summer-time", col.Name, "clocks of its Zone, "+zone.String()+", show one hour twice a year: a row that is due in it is taken as the later", "hold times in UTC")
			}
		case claim.Timestamp:
			if v.c.loc != nil {
				if by := v.sessionApart(v.c.loc); by != 0 {
					v.warn(code, col.Name, fmt.Sprintf("the driver's loc is %s, and the session's zone is %s, %s ahead: times that your program passes to a TIMESTAMP are taken as other instants", v.c.loc, session, by),
						"set time_zone and loc in the DSN to the same zone: time_zone='+00:00' and loc=UTC")
				}
			}
			if v.sessionChanges() && col.Role == "Updated" && v.t.def.Mode() == claim.StatusUpdated {
				v.fault(code, col.Name, "the session's zone, "+session+", has summer time: in the hour that its clocks show twice, the fence that is written is not the one that is compared, and completions are refused",
					"set time_zone='+00:00' and loc=UTC in the DSN")
			} else if v.sessionChanges() {
				v.warn(code, col.Name, "the session's zone, "+session+", has summer time: in the hour that its clocks show twice, what is written as a TIMESTAMP may be an hour off",
					"set time_zone='+00:00' and loc=UTC in the DSN")
			}
		}
	}
}

// zoneName is the session's zone for messages.
func (v *verifier) zoneName() string {
	name := v.c.session["time_zone"]
	if name == "SYSTEM" {
		name += " (" + v.c.session["system_time_zone"] + ")"
	}
	return name
}

// sessionApart is how far the session's clock is ahead of zone's, in the first
// month of a year in which they differ.
func (v *verifier) sessionApart(zone *time.Location) time.Duration {
	for _, o := range v.c.offsets {
		if by := o.ahead - ahead(zone, o.at); by != 0 {
			return by
		}
	}
	return 0
}

func (v *verifier) driverApart(zone *time.Location) time.Duration {
	if v.c.loc == nil {
		return 0
	}
	for _, o := range v.c.offsets {
		if by := ahead(v.c.loc, o.at) - ahead(zone, o.at); by != 0 {
			return by
		}
	}
	return 0
}

func (v *verifier) changes(zone *time.Location) bool {
	for _, o := range v.c.offsets {
		if ahead(zone, o.at) != ahead(zone, v.c.offsets[0].at) {
			return true
		}
	}
	return false
}

func (v *verifier) sessionChanges() bool {
	for _, o := range v.c.offsets {
		if o.ahead != v.c.offsets[0].ahead {
			return true
		}
	}
	return false
}

func ahead(zone *time.Location, at time.Time) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

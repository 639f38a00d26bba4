package mysqlclaim

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// zones judges whether everybody means the same instant by what a clock shows: the
// column's Zone, the session (NOW(), CURRENT_TIMESTAMP, all TIMESTAMPs) and the driver,
// which writes a time.Time by the DSN's loc. Where they don't, a row is due hours too
// early or too late, and nothing else ever says so.
func (v *verifier) zones() {
	session := v.zoneName()
	for _, col := range v.t.def.Columns() {
		f := v.c.column(col.Name)
		if col.Time == nil || f == nil || v.misfit(col, *f) != "" || col.Role == "Lease" && f.data == "datetime" {
			continue
		}
		switch col.Time.Kind {
		case claim.DateTime:
			zone := col.Time.Zone
			if at, by := apart(v.c.offsets, zone); by != 0 && !strings.Contains(strings.ToLower(f.standard), "utc_timestamp") {
				v.judge(col)("session-zone", col.Name, fmt.Sprintf("the column's Zone is %s, and the session's is %s: what NOW() or a default writes at %s is read as an instant that is %s", zone, session, at.Format(time.DateTime), awry(by)),
					"set the Zone that the values are in, or in the DSN time_zone="+v.timeZone(zone))
			}
			if at, by := apart(v.c.written, zone); by != 0 {
				v.judge(col)("driver-zone", col.Name, fmt.Sprintf("the column's Zone is %s, and the driver (the DSN's loc) writes a time.Time of %s UTC as %s: it is read as an instant that is %s", zone, at.Format(time.DateTime), shown(v.c.written, at), awry(by)),
					"set the Zone that the values are in, or loc in the DSN to that of Zone (loc=UTC for UTC)")
			}
			if v.changes(zone) {
				v.advise("summer-time", col.Name, "clocks of its Zone, "+zone.String()+", show one hour twice a year: a row that is due in it is taken as the later", "hold times in UTC")
			}
		case claim.Timestamp:
			if at, by := v.driverApart(); by != 0 && col.Role != "Lease" {
				v.judge(col)("driver-zone", col.Name, fmt.Sprintf("the session's zone is %s, and the driver (the DSN's loc) writes a time.Time of %s UTC as %s: a TIMESTAMP takes it as an instant that is %s", session, at.Format(time.DateTime), shown(v.c.written, at), awry(by)),
					"set time_zone and loc in the DSN to the same zone: time_zone='+00:00' and loc=UTC")
			}
			if !v.sessionChanges() {
				continue
			}
			const code, mend = "session-zone", "set time_zone='+00:00' and loc=UTC in the DSN"
			if col.Written && v.decides(col) {
				v.fault(code, col.Name, "the session's zone, "+session+", has summer time: in the hour that its clocks show twice, what a claim, heartbeat or retry writes as a TIMESTAMP may be an hour off", mend)
			} else {
				v.warn(code, col.Name, "the session's zone, "+session+", has summer time: in the hour that its clocks show twice, what a statement of yours writes as a TIMESTAMP may be an hour off", mend)
			}
		}
	}
}

// decides tells whether dueclaim goes by what the column says.
func (v *verifier) decides(col claim.Column) bool {
	return col.Role != "Updated" || v.t.def.Mode() == claim.StatusUpdated
}

// judge is fault for a column that dueclaim goes by, else warn.
func (v *verifier) judge(col claim.Column) func(code, column, reason, mend string) {
	if v.decides(col) {
		return v.fault
	}
	return v.warn
}

// zoneName is the session's zone for messages.
func (v *verifier) zoneName() string {
	name := v.c.session["time_zone"]
	if name == "SYSTEM" {
		name += " (" + v.c.session["system_time_zone"] + ")"
	}
	return name
}

// apart is how far a clock is ahead of zone's, at the first instant at which they differ.
func apart(clock []offset, zone *time.Location) (at time.Time, by time.Duration) {
	for _, o := range clock {
		if by := o.ahead - ahead(zone, o.at); by != 0 {
			return o.at, by
		}
	}
	return at, 0
}

// driverApart is how far the clock by which the driver writes is ahead of the session's.
func (v *verifier) driverApart() (at time.Time, by time.Duration) {
	for i, o := range v.c.written {
		if by := o.ahead - v.c.offsets[i].ahead; by != 0 {
			return o.at, by
		}
	}
	return at, 0
}

// awry says what becomes of a time that is read by a clock which is behind by that.
func awry(by time.Duration) string {
	if by < 0 {
		return fmt.Sprintf("%s too early", -by)
	}
	return fmt.Sprintf("%s too late", by)
}

// shown is what a clock shows at an instant.
func shown(clock []offset, at time.Time) string {
	for _, o := range clock {
		if o.at.Equal(at) {
			at = at.Add(o.ahead)
			break
		}
	}
	return at.Format(time.DateTime)
}

// timeZone is a zone as the DSN's time_zone takes it: its offset, or, where that
// changes, its name, which the server must know.
func (v *verifier) timeZone(zone *time.Location) string {
	name := zone.String()
	if !v.changes(zone) {
		name = v.c.offsets[0].at.In(zone).Format("-07:00")
	}
	return url.QueryEscape("'" + name + "'")
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

package sqliteclaim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// sampleRows is how many rows at each end of the table Verify looks at.
const sampleRows = 500

// secondsBelow parts seconds from milliseconds: as seconds it is the year 5138, as
// milliseconds March 1973.
const secondsBelow = 100_000_000_000

// rows looks at some rows' ids and times, as a column may hold anything.
func (v *verification) rows(ctx context.Context) error {
	if c, ok := v.d.column(v.t.ID.Name); ok {
		if err := v.sampleIDs(ctx, c.name); err != nil {
			return err
		}
	}
	for _, part := range v.t.Columns() {
		c, ok := v.d.column(part.Name)
		if !ok || part.Time == nil {
			continue
		}
		if err := v.sampleTimes(ctx, part.Role, c.name, *part.Time); err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) sampleIDs(ctx context.Context, name string) error {
	var good string
	var args []any
	switch v.t.ID.Kind {
	case claim.TextID:
		good = "typeof(value) = 'text'"
	case claim.IntegerID:
		good = "typeof(value) = 'integer'"
	case claim.UUIDID:
		good = "typeof(value) = 'text' AND value GLOB ?2"
		hex := func(n int) string { return strings.Repeat("[0-9a-f]", n) }
		args = append(args, hex(8)+"-"+hex(4)+"-"+hex(4)+"-"+hex(4)+"-"+hex(12))
	case claim.BinaryUUIDID:
		good = "typeof(value) = 'blob' AND length(value) = 16"
	}
	s, err := v.sample(ctx, name, good, "FALSE", args...)
	if err == nil && s.bad > 0 {
		v.fs.Add(claim.Warning, "id-form", name, fmt.Sprintf("%s hold an id that is no %s as it should be written, such as %s: those rows are never claimed", s, v.t.ID.Kind, s.example), "")
	}
	return err
}

func (v *verification) sampleTimes(ctx context.Context, role, name string, c claim.TimeColumn) error {
	// What isn't good is a fault in a pending row where it is awry: it is due at another
	// time than it says, or never. Else it is late by less than a day.
	var good, why string
	var args []any
	awry, mend := "TRUE", "write integers"
	switch c.Kind {
	case claim.UnixMilli:
		good = "typeof(value) = 'integer' AND (value <= 0 OR value >= ?2)"
		args = []any{secondsBelow}
		why = "milliseconds since 1970 as an integer"
	case claim.UnixSecond:
		good = "typeof(value) = 'integer' AND value < ?2"
		args = []any{secondsBelow}
		why = "seconds since 1970 as an integer"
	default:
		// Shorter fractions, and none, compare right as well.
		const pattern = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
		forms := []string{"value GLOB ?2"}
		args = []any{pattern}
		for n := 1; n <= c.Digits; n++ {
			forms = append(forms, fmt.Sprintf("value GLOB ?%d", n+2))
			args = append(args, pattern+"."+strings.Repeat("[0-9]", n))
		}
		good = "typeof(value) = 'text' AND (" + strings.Join(forms, " OR ") + ") AND datetime(value) = substr(value, 1, 19)"
		why = "2030-01-02 03:04:05"
		if c.Digits > 0 {
			why += ".678"[:c.Digits+1]
		}
		awry = "typeof(value) <> 'text' OR ltrim(substr(value, 20), '.0123456789') <> ''"
		if c.Zone == time.UTC {
			awry += " AND ltrim(substr(value, 20), '.0123456789') NOT IN ('Z', '+00:00') AND substr(value, 20) NOT LIKE '%+0000 UTC%'"
		}
		mend = "write times in that form (from Go: the claim.TimeColumn's Text(AtLeast(t)), which rounds up)"
	}
	s, err := v.sample(ctx, name, good, awry, args...)
	if err == nil && s.bad > 0 {
		severity := claim.Warning
		if s.awry > 0 {
			severity = claim.Fault
		}
		v.fs.Add(severity, "time-format", name,
			fmt.Sprintf("%s: %s hold a value of another form than %s, such as %s: it compares wrong, so that it is due too early, too late or never", role, s, why, s.example),
			mend+", and change the rows that are there")
	}
	return err
}

// sampled is what a sample showed.
type sampled struct {
	seen, bad int
	awry      int    // those of the bad that are pending, and awry
	example   string // as SQL writes it
}

func (s sampled) String() string {
	return fmt.Sprintf("%d of %d rows that were looked at", s.bad, s.seen)
}

// sample looks at a column's values, NULL apart, at both ends of the table, and
// counts those for which good isn't true. ?1 is the sample's size.
func (v *verification) sample(ctx context.Context, name, good, awry string, args ...any) (s sampled, err error) {
	columns := quote(name) + " AS value, FALSE AS live"
	if c, ok := v.d.column(v.t.State.Name); ok {
		columns = quote(name) + " AS value, " + quote(c.name) + " = " + literal(v.t.State.Pending) + " AS live"
	}
	rows := "SELECT * FROM (SELECT " + columns + " FROM " + v.name + " LIMIT ?1)"
	if id := v.t.ID.Name; v.d.unique(id) { // else it would have to sort them
		id = quote(id)
		rows = "SELECT value, live FROM (SELECT * FROM (SELECT " + id + " AS id, " + columns + " FROM " + v.name + " ORDER BY " + id + " LIMIT ?1)" +
			" UNION SELECT * FROM (SELECT " + id + ", " + columns + " FROM " + v.name + " ORDER BY " + id + " DESC LIMIT ?1))"
	}
	err = v.conn.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(bad), 0), coalesce(sum(bad AND live AND ("+awry+")), 0), coalesce(max(CASE WHEN bad THEN quote(value) END), '') FROM ("+
		"SELECT value, live, NOT coalesce("+good+", 0) AS bad FROM ("+rows+") WHERE value IS NOT NULL)",
		append([]any{sampleRows}, args...)...).Scan(&s.seen, &s.bad, &s.awry, &s.example)
	if len(s.example) > 100 {
		s.example = strings.ToValidUTF8(s.example[:100], "") + "…"
	}
	return s, err
}

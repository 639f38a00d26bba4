package claim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Bounds of Table.LeaseFor.
const (
	minLeaseFor = time.Second
	maxLeaseFor = 24 * time.Hour
)

// Check returns nil or an error (core.ErrInvalid) that names each part of t that
// is wrong, what was expected and what to do.
func (t Table) Check() error {
	errs := []error{
		CheckTable(t.Name, 0),
		checkColumn("ID", t.ID.Name),
		t.checkState(),
		t.checkDue(),
		t.checkMode(),
		t.checkColumns(),
	}
	if t.ID.Kind > BinaryUUIDID {
		errs = append(errs, fmt.Errorf("%w: ID.Kind is %d, want TextID, IntegerID, UUIDID or BinaryUUIDID", core.ErrInvalid, t.ID.Kind))
	}
	for i, c := range t.Where {
		role := fmt.Sprintf("Where[%d]", i)
		errs = append(errs, checkColumn(role, c.Column), c.Equals.check(role+".Equals"))
		if c.Equals.IsZero() != c.IsNull {
			errs = append(errs, fmt.Errorf("%w: %s has Equals %s and IsNull %t; want one of them: the value that the column has, or that it is Null", core.ErrInvalid, role, c.Equals, c.IsNull))
		}
	}
	if t.FixedKind != "" {
		if t.Kind != "" {
			errs = append(errs, fmt.Errorf("%w: Kind and FixedKind are both set; want one", core.ErrInvalid))
		}
		errs = append(errs, core.Task{ID: "x", Kind: t.FixedKind, Due: Time(0)}.Check())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("table %q: %w", t.Name, err)
	}
	return nil
}

func (t Table) checkState() error {
	s := t.State
	errs := []error{checkColumn("State", s.Name)}
	values := []struct {
		role string
		v    Value
	}{{"State.Pending", s.Pending}, {"State.Processing", s.Processing}, {"State.Done", s.Done}, {"State.Dead", s.Dead}}
	for i, a := range values {
		errs = append(errs, a.v.check(a.role))
		if a.v.IsZero() && (a.role == "State.Pending" || a.role == "State.Done") {
			errs = append(errs, fmt.Errorf("%w: %s is missing", core.ErrInvalid, a.role))
		}
		for _, b := range values[:i] {
			if !a.v.IsZero() && !b.v.IsZero() && a.v.Column() == b.v.Column() {
				errs = append(errs, fmt.Errorf("%w: %s and %s are both %s; want different values", core.ErrInvalid, b.role, a.role, a.v))
			}
			if !a.v.IsZero() && !b.v.IsZero() && a.v.kind != b.v.kind {
				errs = append(errs, fmt.Errorf("%w: %s is %s and %s is %s; want values of one kind", core.ErrInvalid, b.role, b.v, a.role, a.v))
			}
		}
	}
	return errors.Join(errs...)
}

func (t Table) checkDue() error {
	d := t.Due
	errs := []error{d.Column.check("Due.Column"), d.Base.check("Due.Base")}
	switch {
	case d.Column == (TimeColumn{}) && d.Base == (TimeColumn{}) && d.After == 0:
		errs = append(errs, fmt.Errorf("%w: Due is missing: map Due.Column, a column with the due time, or Due.Base and Due.After, such as created_at and 30 minutes; where rows are due from the start, Due.Base is the time of their creation and Due.After 0", core.ErrInvalid))
	case d.Column.Name != "" && d.Base.Name != "":
		errs = append(errs, fmt.Errorf("%w: Due.Column and Due.Base are both set; want the one that a retry may write (Column), or the one that is only read (Base)", core.ErrInvalid))
	case d.After != 0 && d.Base.Name == "":
		errs = append(errs, fmt.Errorf("%w: Due.After needs Due.Base, the column that it is counted from", core.ErrInvalid))
	case d.After < 0 || d.After%time.Millisecond != 0 || d.After > 100*365*24*time.Hour:
		errs = append(errs, fmt.Errorf("%w: Due.After is %s; want whole milliseconds from 0 to 100 years", core.ErrInvalid, d.After))
	}
	return errors.Join(errs...)
}

// checkMode finds out whether the columns make one of the modes.
func (t Table) checkMode() error {
	var errs []error
	need := func(ok bool, role, why string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: %s is missing: %s", core.ErrInvalid, role, why))
		}
	}
	refuse := func(set bool, role, why string) {
		if set {
			errs = append(errs, fmt.Errorf("%w: %s is set: %s", core.ErrInvalid, role, why))
		}
	}
	switch t.Mode() {
	case Full:
		const why = "Token, Holder and Lease go together"
		need(t.Token != "", "Token", why)
		need(t.Holder != "", "Holder", why)
		need(t.Lease.Name != "", "Lease", why)
		refuse(t.LeaseFor != 0, "LeaseFor", "with a column for the lease's end, core.Options.Lease decides")
	case StatusUpdated:
		need(t.Updated.Name != "", "Updated", "a row in processing needs Token, Holder and Lease, or the time of its last change (Updated) and LeaseFor")
		if t.LeaseFor < minLeaseFor || t.LeaseFor > maxLeaseFor || t.LeaseFor%time.Second != 0 {
			errs = append(errs, fmt.Errorf("%w: LeaseFor is %s; want whole seconds from %s to %s", core.ErrInvalid, t.LeaseFor, minLeaseFor, maxLeaseFor))
		}
	case Transition:
		const why = "without State.Processing a claim writes nothing"
		refuse(t.Token != "", "Token", why)
		refuse(t.Holder != "", "Holder", why)
		refuse(t.Lease.Name != "", "Lease", why)
		refuse(t.Attempts != "", "Attempts", why)
		refuse(t.Crashes != "", "Crashes", why)
		refuse(t.LastError != "", "LastError", why)
		refuse(t.LeaseFor != 0, "LeaseFor", why)
	}
	refuse(t.Crashes != "" && t.Attempts == "", "Crashes", "it needs Attempts beside it")
	return errors.Join(errs...)
}

// checkColumns checks the rest of the names, and that no column has two parts.
func (t Table) checkColumns() error {
	errs := []error{t.Lease.check("Lease"), t.Updated.check("Updated")}
	for _, c := range []struct{ role, name string }{
		{"Token", t.Token},
		{"Holder", t.Holder},
		{"Attempts", t.Attempts},
		{"Crashes", t.Crashes},
		{"LastError", t.LastError},
		{"Payload", t.Payload},
		{"Kind", t.Kind},
	} {
		if c.name != "" {
			errs = append(errs, checkColumn(c.role, c.name))
		}
	}
	parts := map[string]Column{} // by lower case: databases fold names
	for _, c := range t.Columns() {
		name := strings.ToLower(c.Name)
		if other, ok := parts[name]; ok && (c.Written || other.Written) {
			want := "a column for each"
			if other.Role == "Due.Base" && c.Role == "Updated" {
				want = "another column, or mode Transition, which can count from the row's last change: leave State.Processing, Updated and LeaseFor out"
			}
			errs = append(errs, fmt.Errorf("%w: column %s plays two parts, %s and %s; want %s", core.ErrInvalid, c.Name, other.Role, c.Role, want))
		}
		parts[name] = c
	}
	return errors.Join(errs...)
}

// Column is a column of a Table with its part.
type Column struct {
	Role string // the field of Table, such as "Due.Base"
	Name string
	// Written tells whether dueclaim writes it.
	Written bool
	// Time is set where the column holds an instant.
	Time *TimeColumn
}

// Columns returns the columns that are mapped, the key's first. A column that
// Where names may be there twice.
func (t Table) Columns() []Column {
	var all []Column
	add := func(role, name string, written bool, c *TimeColumn) {
		if name != "" {
			all = append(all, Column{role, name, written, c})
		}
	}
	instant := func(role string, c TimeColumn, written bool) { add(role, c.Name, written, &c) }
	add("ID", t.ID.Name, false, nil)
	add("State", t.State.Name, true, nil)
	instant("Due.Column", t.Due.Column, t.Mode() != Transition)
	instant("Due.Base", t.Due.Base, false)
	add("Token", t.Token, true, nil)
	add("Holder", t.Holder, true, nil)
	instant("Lease", t.Lease, true)
	instant("Updated", t.Updated, true)
	add("Attempts", t.Attempts, true, nil)
	add("Crashes", t.Crashes, true, nil)
	add("LastError", t.LastError, true, nil)
	add("Payload", t.Payload, false, nil)
	add("Kind", t.Kind, false, nil)
	for i, c := range t.Where {
		add(fmt.Sprintf("Where[%d]", i), c.Column, false, nil)
	}
	return all
}

func checkColumn(role, name string) error {
	if name == "" {
		return fmt.Errorf("%w: %s has no column name", core.ErrInvalid, role)
	}
	if !identifier.MatchString(name) {
		return fmt.Errorf("%w: column name %q (%s); want letters, digits, _ and $, not starting with a digit, at most 63 bytes", core.ErrInvalid, name, role)
	}
	return nil
}

package sqliteclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dueclaim/dueclaim/claim"
)

// checks finds out whether a CHECK refuses what dueclaim will write. SQLite only
// knows when it writes; so an empty copy of the table is made in memory, with one
// row, and written to.
func (v *verification) checks(ctx context.Context) error {
	if !strings.Contains(strings.ToUpper(v.d.create), "CHECK") {
		return nil
	}
	copied, err := v.copied(ctx)
	if err == nil {
		defer func() { _ = copied.Close() }()
		err = v.tryStates(ctx, copied)
	}
	if err != nil && ctx.Err() == nil {
		v.fs.Add(claim.Info, "check-unknown", "", fmt.Sprintf("the table has a CHECK that couldn't be tried on a copy in memory (%v): see whether it allows the states that are mapped", err), "")
		return nil
	}
	return err
}

// copied is a database in memory with an empty copy of the table but for a row in
// the state pending, as far as that can be known: what isn't mapped is NULL, the
// default, or where it must be something, nothing.
func (v *verification) copied(ctx context.Context) (*sql.DB, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	fill := map[string]any{}
	for _, c := range v.d.columns {
		if !c.notNull || c.hasDefault || c.generated {
			continue
		}
		switch affinity(c.declared, v.d.strict) {
		case "TEXT":
			fill[c.name] = ""
		case "BLOB":
			fill[c.name] = []byte{}
		default:
			fill[c.name] = 0
		}
	}
	for _, c := range v.t.Where {
		if !c.IsNull {
			fill[c.Column] = bound(c.Equals)
		}
	}
	fill[v.t.State.Name] = bound(v.t.State.Pending)
	var names, places []string
	var args []any
	for _, c := range v.d.columns {
		for name, value := range fill {
			if strings.EqualFold(name, c.name) && !c.generated {
				names, places, args = append(names, quoteAny(c.name)), append(places, "?"), append(args, value)
				break
			}
		}
	}
	for _, statement := range []struct {
		text string
		args []any
	}{
		{v.d.create, nil},
		{"PRAGMA ignore_check_constraints = 1", nil},
		{"INSERT INTO " + v.name + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(places, ", ") + ")", args},
		{"PRAGMA ignore_check_constraints = 0", nil},
	} {
		if _, err := db.ExecContext(ctx, statement.text, statement.args...); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// tryStates writes each state that dueclaim writes, together with the other columns.
func (v *verification) tryStates(ctx context.Context, copied *sql.DB) error {
	for _, state := range []struct {
		role  string
		value claim.Value
	}{
		{"State.Pending", v.t.State.Pending},
		{"State.Processing", v.t.State.Processing},
		{"State.Done", v.t.State.Done},
		{"State.Dead", v.t.State.Dead},
	} {
		if state.value.IsZero() {
			continue
		}
		whole, args := v.sets(state.value)
		refused, err := refuses(ctx, copied, "UPDATE "+v.name+" SET "+whole, args...)
		if refused == "" || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		alone, err := refuses(ctx, copied, "UPDATE "+v.name+" SET "+quote(v.t.State.Name)+" = ?1", bound(state.value))
		if err != nil {
			return err
		}
		const mend = "rebuild the table with a CHECK that allows it"
		if alone != "" {
			v.fs.Add(claim.Fault, "check-lacks-value", v.t.State.Name, fmt.Sprintf("%s is %s, which a CHECK refuses: %s", state.role, state.value, alone), mend)
		} else {
			v.fs.Add(claim.Fault, "check", "", fmt.Sprintf("what is written with the state %s breaks a CHECK: %s", state.value, refused), mend)
		}
	}
	return nil
}

// sets are the assignments of a transition into a state, at their longest.
func (v *verification) sets(state claim.Value) (list string, args []any) {
	var sets []string
	for _, part := range v.t.Columns() {
		c, ok := v.d.column(part.Name)
		if !ok || !part.Written || c.generated {
			continue
		}
		var value any
		switch {
		case part.Role == "State":
			value = bound(state)
		case part.Role == "Lease" && state != v.t.State.Processing:
			value = nil
		case part.Time != nil:
			value = instant(*part.Time, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		case part.Role == "Token", part.Role == "Attempts", part.Role == "Crashes":
			value = 1
		case part.Role == "Holder":
			value = strings.Repeat("f", 64)
		case part.Role == "LastError":
			value = strings.Repeat("e", 4096)
		}
		sets, args = append(sets, quote(c.name)+" = ?"), append(args, value)
	}
	return strings.Join(sets, ", "), args
}

// refuses runs a statement on the copy and returns the driver's words when a CHECK
// stopped it. What else stops it is other findings' matter.
func refuses(ctx context.Context, copied *sql.DB, query string, args ...any) (string, error) {
	_, err := copied.ExecContext(ctx, query, args...)
	var e *sqlite.Error
	if errors.As(err, &e) {
		if e.Code() == sqlite3.SQLITE_CONSTRAINT_CHECK {
			return strings.TrimPrefix(e.Error(), "constraint failed: "), nil
		}
		if code(err) == sqlite3.SQLITE_CONSTRAINT {
			return "", nil
		}
	}
	return "", err
}

// bound is a value as a statement's argument.
func bound(v claim.Value) any {
	if v.Kind() == claim.TextValue {
		return v.Text()
	}
	return v.Int()
}

// instant is a time as a statement's argument for the column, rounded up.
func instant(c claim.TimeColumn, t time.Time) any {
	if c.Integer() {
		return c.AtLeast(t)
	}
	return c.Text(c.AtLeast(t))
}

// quoteAny quotes a name of the user's table, which may be anything.
func quoteAny(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

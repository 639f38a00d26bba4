package sqliteclaim

import (
	"context"
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/claim"
)

// inTheWay are the findings whose mends belong to the way to mode Full.
var inTheWay = []string{"id-not-unique", "lease-not-null", "due-index-missing"}

// addition is a column that mode Full wants.
type addition struct {
	name       string
	definition string // its type and constraints
}

// additionRoles are the parts that Suggest adds columns for, in order.
var additionRoles = []string{"Token", "Holder", "Lease", "Attempts", "Crashes", "LastError"}

// additions are the columns of mode Full by their part. The user's own INSERTs need
// not know them.
func additions() map[string]addition {
	return map[string]addition{
		"Token":     {"dueclaim_token", "INTEGER NOT NULL DEFAULT 0"},
		"Holder":    {"dueclaim_holder", "TEXT NOT NULL DEFAULT ''"},
		"Lease":     {"dueclaim_lease", "INTEGER"},
		"Attempts":  {"dueclaim_attempts", "INTEGER NOT NULL DEFAULT 0"},
		"Crashes":   {"dueclaim_crashes", "INTEGER NOT NULL DEFAULT 0"},
		"LastError": {"dueclaim_error", "TEXT"},
	}
}

// Suggest reads the table's definition and returns the statements that lead from it
// to mode Full: the columns that aren't mapped (their names start with dueclaim_;
// map them afterwards, Lease as claim.UnixMilli), and the index for sweeps and that
// on the id. It changes nothing, and returns nothing where nothing is missing. What no ALTER TABLE
// of SQLite can change, such as a CHECK, is in Verify's findings.
func (t *Table) Suggest(ctx context.Context) ([]string, error) {
	var d definition
	err := t.wait(ctx, func() (err error) {
		d, err = define(ctx, t.db, t.def.Name)
		return err
	})
	if err == nil && d.kind != "table" {
		err = fmt.Errorf("there is no table of that name; Verify says more")
	}
	if err != nil {
		return nil, t.wrap("suggest", err)
	}
	mapped := map[string]string{}
	for _, part := range t.def.Columns() {
		mapped[part.Role] = part.Name
	}
	var statements []string
	for _, role := range additionRoles {
		add := additions()[role]
		name, ok := mapped[role]
		if ok {
			add = renamed(t.def, role, name)
		}
		if _, there := d.column(add.name); !there {
			statements = append(statements, add.statement(t.name))
		}
	}
	v := verification{t: t.def, name: t.name, table: t, d: d}
	v.columns()
	if err := t.wait(ctx, func() error { return v.index(ctx, t.db) }); err != nil {
		return nil, t.wrap("suggest", err)
	}
	for _, f := range v.fs {
		if slices.Contains(inTheWay, f.Code) {
			statements = append(statements, f.Mend)
		}
	}
	return statements, nil
}

// statement adds the column to a table, whose name is quoted.
func (a addition) statement(table string) string {
	return "ALTER TABLE " + table + " ADD COLUMN " + quote(a.name) + " " + a.definition
}

// renamed is the column of a part under the name that is mapped for it.
func renamed(t claim.Table, role, name string) addition {
	add := additions()[role]
	add.name = name
	if role == "Lease" && !t.Lease.Integer() {
		add.definition = "TEXT"
	}
	return add
}

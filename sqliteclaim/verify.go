package sqliteclaim

import (
	"context"
	"fmt"

	"github.com/dueclaim/dueclaim/claim"
)

// Verify reads the table's definition, some of its rows and the settings of one
// connection, and returns what is wrong or could be better, the worst first, and
// at the end what the mode promises. It changes nothing, and takes no lock that
// another one would wait for. A table or column that is missing is a finding; the
// error is for a file that can't be read.
//
// What SQLite doesn't tell is not in the list: conditions in a CHECK are tried on a
// copy of the empty table in memory, those that depend on more than the columns that
// are mapped may be misjudged, and rows beyond the sample (some hundred at both
// ends of the table) may hold what the sample doesn't.
func (t *Table) Verify(ctx context.Context) (claim.Findings, error) {
	fs, err := t.verify(ctx)
	if err != nil {
		return nil, t.wrap("verify", err)
	}
	fs = append(fs, t.def.Promises()...)
	fs.Sort()
	return fs, nil
}

func (t *Table) verify(ctx context.Context) (claim.Findings, error) {
	conn, err := t.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // gives it back to the pool
	v := verification{t: t.def, name: t.name, table: t, conn: conn}
	err = t.wait(ctx, func() error {
		v.fs = nil
		return v.run(ctx)
	})
	return v.fs, err
}

// run looks at everything, as far as what it found lets it.
func (v *verification) run(ctx context.Context) (err error) {
	if err := v.session(ctx); err != nil {
		return err
	}
	if v.d, err = define(ctx, v.conn, v.t.Name); err != nil {
		return err
	}
	switch v.d.kind {
	case "table":
	case "":
		v.fs.Add(claim.Fault, "table-missing", "", fmt.Sprintf("there is no table %s in the file", v.t.Name), "create it, or set Name to the table that you mean")
		return nil
	default:
		v.fs.Add(claim.Fault, "not-a-table", "", fmt.Sprintf("%s is a %s; rows can be claimed in a table only", v.t.Name, v.d.kind), "set Name to the table itself")
		return nil
	}
	v.columns()
	if err := v.index(ctx, v.conn); err != nil {
		return err
	}
	for _, look := range []func(context.Context) error{v.collations, v.lookup, v.updateTriggers, v.zones, v.checks, v.rows} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

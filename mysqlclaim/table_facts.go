package mysqlclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// facts returns what statements depend on: character sets, the names of indexes.
// It is read once, by the connection that the statement will use, so that a
// transaction doesn't wait for a second one. Of a table that isn't there nothing
// is known, and the statement then says so itself.
func (t *Table) facts(ctx context.Context, conn conn) (*catalog, error) {
	if c := t.known.Load(); c != nil {
		return c, nil
	}
	if _, err := examine(ctx, conn); err != nil {
		return nil, err
	}
	c := newCatalog()
	if err := c.readVariables(ctx, conn); err != nil {
		return nil, err
	}
	c.place(t.def.Name)
	if err := errors.Join(c.readColumns(ctx, conn), c.readIndexes(ctx, conn)); err != nil {
		return nil, err
	}
	if !c.identifies(t.def.ID.Name) {
		return nil, fmt.Errorf("no unique index has column %s alone: a change of one row would reach others of that id, also such as don't meet Where; Verify says how to mend it", t.def.ID.Name)
	}
	if len(c.columns) > 0 {
		t.known.Store(c)
	}
	return c, nil
}

// identifies tells whether an id is that of one row at most. Of a column that isn't
// there the server will say so itself.
func (c *catalog) identifies(id string) bool {
	return c.column(id) == nil || slices.ContainsFunc(c.indexes, func(x index) bool {
		return x.unique && len(x.parts) == 1 && strings.EqualFold(x.parts[0].column, id) && !x.parts[0].prefix
	})
}

// forget drops what is known when an error says that the table has changed.
func (t *Table) forget(err error) {
	switch number(err) {
	case errNoTable, errNoColumn, errNoKey, errCollation, errCollations:
		t.known.Store(nil)
	}
}

// stamped tells whether a mapped column is a TIMESTAMP, what it shows depends on
// the session's zone.
func (t *Table) stamped() bool {
	return slices.ContainsFunc(t.def.Columns(), func(c claim.Column) bool { return c.Time != nil && c.Time.Kind == claim.Timestamp })
}

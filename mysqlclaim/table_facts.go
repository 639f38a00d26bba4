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
	c := newCatalog()
	if err := c.readVariables(ctx, conn); err != nil {
		return nil, err
	}
	if err := t.fit(c); err != nil {
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

// fit refuses a server or session on which nothing would work; see Store.ready.
func (t *Table) fit(c *catalog) error {
	version := c.session["version"]
	switch {
	case !supported(version):
		return fmt.Errorf("server version %s; want MySQL 8.0 or MariaDB 10.6 or newer", version)
	case off(c.session["autocommit"]):
		return errors.New("autocommit is off on this pool's connections, so nothing would be committed; remove it from the DSN or init_connect")
	case on(c.session["read_only"]), on(c.session["innodb_read_only"]):
		return errors.New("the server is read-only (a replica?); mysqlclaim needs the primary")
	case t.stamped() && !c.mariadb && !hintsZone(version):
		return fmt.Errorf("server version %s; want MySQL 8.0.17 or newer for columns of type TIMESTAMP", version)
	}
	return nil
}

func on(v string) bool { return v != "" && !off(v) }

// hintsZone tells whether a version of MySQL knows SET_VAR(time_zone = …).
func hintsZone(version string) bool {
	var major, minor, patch int
	n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	return n == 3 && (major > 8 || major == 8 && (minor > 0 || patch >= 17))
}

// stamped tells whether a mapped column is a TIMESTAMP, what it shows depends on
// the session's zone.
func (t *Table) stamped() bool {
	return slices.ContainsFunc(t.def.Columns(), func(c claim.Column) bool { return c.Time != nil && c.Time.Kind == claim.Timestamp })
}

package sqliteclaim

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// definition is a table as the file's schema has it.
type definition struct {
	kind      string // "table", "view", "virtual", "shadow"; "" for none
	strict    bool
	noRowid   bool
	create    string // the CREATE TABLE
	columns   []column
	indexes   []index
	triggers  []string
	keyColumn []string // of the primary key
}

// column is a column of a definition.
type column struct {
	name, declared string
	notNull        bool
	hasDefault     bool
	defaults       string // the DEFAULT's text
	key            int    // place in the primary key, from 1
	generated      bool
}

// index is an index of a definition, the primary key's included.
type index struct {
	name    string
	unique  bool
	partial bool
	primary bool     // made for the primary key
	columns []string // lower case; "" for an expression
	// rest are the columns that stand behind, "" for the rowid.
	rest []string
}

// reader is what a *sql.Conn and a *sql.DB have in common for reading.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// define reads the definition of a table of the main database.
func define(ctx context.Context, q reader, table string) (definition, error) {
	var d definition
	err := each(ctx, q, `SELECT l.type, l.strict, l.wr, coalesce(s.sql, '')
		FROM pragma_table_list(?1) l LEFT JOIN main.sqlite_schema s ON s.name = l.name AND s.type IN ('table', 'view')
		WHERE l.schema = 'main'`,
		func(scan scanner) error { return scan(&d.kind, &d.strict, &d.noRowid, &d.create) }, table)
	if err != nil || d.kind != "table" {
		return d, err
	}
	err = each(ctx, q, `SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?1, 'main')`,
		func(scan scanner) error {
			var c column
			var defaults sql.NullString
			var hidden int
			err := scan(&c.name, &c.declared, &c.notNull, &defaults, &c.key, &hidden)
			c.hasDefault, c.defaults, c.generated = defaults.Valid, defaults.String, hidden != 0
			if c.key > 0 {
				d.keyColumn = append(d.keyColumn, strings.ToLower(c.name))
			}
			d.columns = append(d.columns, c)
			return err
		}, table)
	if err != nil {
		return d, err
	}
	err = each(ctx, q, `SELECT l.name, l."unique", l.partial, l.origin = 'pk', coalesce(x.name, ''), x.key
		FROM pragma_index_list(?1, 'main') l, pragma_index_xinfo(l.name, 'main') x ORDER BY l.seq, x.seqno`,
		func(scan scanner) error {
			var i index
			var name string
			var key bool
			if err := scan(&i.name, &i.unique, &i.partial, &i.primary, &name, &key); err != nil {
				return err
			}
			if n := len(d.indexes); n == 0 || d.indexes[n-1].name != i.name {
				d.indexes = append(d.indexes, i)
			}
			last := &d.indexes[len(d.indexes)-1]
			if key {
				last.columns = append(last.columns, strings.ToLower(name))
			} else {
				last.rest = append(last.rest, strings.ToLower(name))
			}
			return nil
		}, table)
	if err != nil {
		return d, err
	}
	err = each(ctx, q, `SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?1) ORDER BY name`,
		func(scan scanner) error {
			var name string
			err := scan(&name)
			d.triggers = append(d.triggers, name)
			return err
		}, table)
	return d, err
}

// column finds a column by its name in any case, as SQLite does.
func (d definition) column(name string) (column, bool) {
	i := slices.IndexFunc(d.columns, func(c column) bool { return strings.EqualFold(c.name, name) })
	if i < 0 {
		return column{}, false
	}
	return d.columns[i], true
}

// rowid tells whether a column is the rowid by another name: INTEGER PRIMARY KEY,
// which is unique and never NULL with no index and no NOT NULL.
func (d definition) rowid(name string) bool {
	if d.noRowid || len(d.keyColumn) != 1 || d.keyColumn[0] != strings.ToLower(name) {
		return false
	}
	return !slices.ContainsFunc(d.indexes, func(i index) bool { return i.primary })
}

// unique tells whether a column is unique by itself.
func (d definition) unique(name string) bool {
	return d.rowid(name) || slices.ContainsFunc(d.indexes, func(i index) bool {
		return i.unique && !i.partial && slices.Equal(i.columns, []string{strings.ToLower(name)})
	})
}

// sweepColumns are the columns of the index that a sweep reads along: those that
// are equal to something, the one that it is ordered by, if any, and the id.
func sweepColumns(t claim.Table) (equal []string, due, id string) {
	for _, c := range t.Where {
		equal = append(equal, c.Column)
	}
	equal = append(equal, t.State.Name)
	source, _ := t.Due.Source()
	return equal, source.Name, t.ID.Name
}

// sweepIndex tells whether an index serves the sweep. One without the id at its end
// does, as few rows have the same due time.
func (d definition) sweepIndex(t claim.Table) bool {
	equal, due, id := sweepColumns(t)
	lower := make(map[string]bool)
	for _, name := range equal {
		lower[strings.ToLower(name)] = true
	}
	next := strings.ToLower(due)
	if next == "" {
		next = strings.ToLower(id)
	}
	return slices.ContainsFunc(d.indexes, func(i index) bool {
		if i.partial || len(i.columns) < len(lower) {
			return false
		}
		head := make(map[string]bool)
		for _, name := range i.columns[:len(lower)] {
			head[name] = lower[name]
		}
		for name := range lower {
			if !head[name] {
				return false
			}
		}
		tail := append(slices.Clone(i.columns[len(lower):]), i.rest...)
		for k, name := range tail {
			if name == "" && d.rowid(id) {
				tail[k] = strings.ToLower(id)
			}
		}
		return len(tail) > 0 && tail[0] == next
	})
}

// sweepStatement makes the index that sweepIndex looks for.
func sweepStatement(t claim.Table) string {
	equal, due, id := sweepColumns(t)
	all := append(equal, id)
	if due != "" {
		all = append(equal, due, id)
	}
	seen := make(map[string]bool)
	var list []string
	for _, name := range all {
		if !seen[strings.ToLower(name)] {
			list = append(list, quote(name))
		}
		seen[strings.ToLower(name)] = true
	}
	// An index's name is one of the whole database.
	name := "dueclaim_" + t.Name + "_due"
	return "CREATE INDEX " + quote(name) + " ON " + quote(t.Name) + " (" + strings.Join(list, ", ") + ")"
}

// quote quotes a name that claim.Table.Check accepted.
func quote(name string) string { return claim.QuoteTable(name, '"') }

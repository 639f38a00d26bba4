package sqliteclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// Table claims the rows of a table of the user's own; see [claim.Table] for its
// modes and their promises. It is safe for concurrent use.
//
// SQLite's types are loose: except in STRICT tables a column takes values of any
// type. Table goes by what a column holds: text in a [claim.DateTime] column must
// be as SQLite's datetime function writes it, and compares as text. The driver
// writes a time.Time in another form unless told otherwise; write what the
// column's Text(AtLeast(t)) gives instead, which rounds up as is safe for a due
// time. Verify looks at some rows.
type Table struct {
	database
	def    claim.Table
	name   string // quoted
	engine *sqltable.Engine
}

// maxFraction is how many digits of a second SQLite's date functions know.
const maxFraction = 3

// NewTable returns a Table on a database that the caller opened with the driver
// "sqlite" of modernc.org/sqlite and goes on to own. It doesn't connect, and the
// settings are the caller's: those that [New] asks for are the right ones here too,
// and Verify says what is wrong with others. Without a busy_timeout calls fail
// with SQLITE_BUSY at once while somebody else writes.
//
// The error, core.ErrInvalid, says what is wrong with def. Its Name must be one
// without a schema.
func NewTable(db *sql.DB, def claim.Table) (*Table, error) {
	t, err := newTable(usersDatabase(db), def)
	if err != nil {
		return nil, fmt.Errorf("sqliteclaim: new table: %w", err)
	}
	return t, nil
}

// OpenTable opens the SQLite file at path, as [Open] does, for its table def.Name;
// Close closes it. The table need not be there yet. A file that isn't in WAL mode
// is put into it, and stays so; the connections enforce foreign keys.
func OpenTable(ctx context.Context, path string, def claim.Table) (*Table, error) {
	t, err := newTable(database{}, def)
	if err == nil {
		t.database, err = openDatabase(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("sqliteclaim: open table %q: %w", path, explain(err))
	}
	return t, nil
}

func newTable(d database, def claim.Table) (*Table, error) {
	errs := []error{def.Check()}
	if strings.Contains(def.Name, ".") {
		errs = append(errs, fmt.Errorf("%w: table name %q; want one without a schema", core.ErrInvalid, def.Name))
	}
	for _, c := range def.Columns() {
		switch {
		case c.Time == nil:
		case c.Time.Kind == claim.Timestamp:
			errs = append(errs, fmt.Errorf("%w: column %s (%s): SQLite has no Timestamp; want DateTime for text, UnixMilli or UnixSecond for integers", core.ErrInvalid, c.Name, c.Role))
		case c.Time.Kind == claim.DateTime && c.Time.Digits > maxFraction:
			errs = append(errs, fmt.Errorf("%w: column %s (%s): Digits is %d; SQLite knows at most %d", core.ErrInvalid, c.Name, c.Role, c.Time.Digits, maxFraction))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	limits := sqltable.Limits{Rows: maxItems, Bytes: maxBytes, Unfit: unfit}
	return &Table{database: d, def: def, name: claim.QuoteTable(def.Name, '"'), engine: sqltable.New(def, limits)}, nil
}

// DB returns the database, for transactions of yours; what [Store.DB] says of them
// holds here too.
func (t *Table) DB() *sql.DB { return t.handle() }

// Close closes the file that OpenTable opened. On a Table from NewTable it does
// nothing: the database is the caller's.
func (t *Table) Close() error { return t.close() }

// wrap names the call, and says what an error means where the driver doesn't.
func (t *Table) wrap(call string, err error) error {
	return fmt.Errorf("sqliteclaim: table %s: %s: %w", t.def.Name, call, explain(err))
}

package mysqlclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// Server error numbers that a look at a table may meet.
const (
	errNoAccess       = 1044 // to the database
	errNoDatabase     = 1046 // none is selected
	errNoTableAccess  = 1142
	errNoColumnAccess = 1143
	errUnknownSchema  = 1049
	errBrokenView     = 1356
)

// catalog is what the server says about the table and about this session, as
// read by one look. Nothing in it depends on the statistics that MySQL caches.
type catalog struct {
	mariadb  bool
	dialect  dialect
	session  map[string]string // the system variables of importance that there are
	offsets  []offset          // of the session's clock, over a year
	written  []offset          // of the clock by which the driver writes a time.Time, at the same instants
	user     string            // user@host, as grants name it
	database string
	name     string

	unfit            string // why every call fails in such a session; empty: it doesn't
	missing, refused string // why the table can't be looked at; empty: it can
	kind, engine     string
	columns          []column
	indexes          []index
	triggers         []trigger // those that an UPDATE fires
	triggersHidden   bool      // this user wouldn't see them
	beyond           bool      // there are ids that no integer of 64 bits with a sign can be
	checks           []check
	padded           map[string]bool // collations that ignore spaces at the end
}

// trigger is a trigger with its statement.
type trigger struct{ name, source string }

// offset is how far a clock is ahead of UTC at an instant.
type offset struct {
	at    time.Time
	ahead time.Duration
}

// check is a CHECK constraint, of a column (MariaDB) or of the table.
type check struct {
	name, clause string
	ofColumn     bool
}

// variables are the system variables that matter, by all their names.
const variables = "'version', 'autocommit', 'read_only', 'innodb_read_only', 'super_read_only', 'tx_read_only', " +
	"'transaction_read_only', 'sql_mode', 'time_zone', 'system_time_zone', 'log_bin', 'binlog_format', 'lower_case_table_names'"

func newCatalog() *catalog {
	return &catalog{session: map[string]string{}, padded: map[string]bool{}}
}

// look reads the catalog over one connection. A table that isn't there or may
// not be read is part of the answer; errors are those of reading.
func (t *Table) look(ctx context.Context) (c *catalog, err error) {
	session, err := t.db.Conn(ctx) // one session
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	c = newCatalog()
	if err := errors.Join(c.readVariables(ctx, session), c.readZones(ctx, session)); err != nil {
		return nil, err
	}
	if _, unfit := examine(ctx, session); unfit != nil {
		c.unfit = unfit.Error()
	}
	c.place(t.def.Name)
	if err := c.probe(ctx, session, t.quoted); err != nil || c.missing != "" || c.refused != "" {
		return c, err
	}
	for _, read := range []func(context.Context, conn) error{
		c.readTable, c.readColumns, c.readIndexes, c.readTriggers, c.readChecks, c.readCollations,
	} {
		if err := read(ctx, session); err != nil {
			return nil, err
		}
	}
	return c, c.readBeyond(ctx, session, t)
}

// readBeyond looks for ids of an unsigned column that are too large to be ids.
func (c *catalog) readBeyond(ctx context.Context, conn conn, t *Table) error {
	f := c.column(t.def.ID.Name)
	if f == nil || !f.unsigned() || t.def.ID.Kind != claim.IntegerID {
		return nil
	}
	name := quoteName(f.name)
	return each(ctx, conn, "SELECT 1 FROM "+t.quoted+" WHERE "+name+" > 9223372036854775807 LIMIT 1", nil, func(*sql.Rows) error {
		c.beyond = true
		return nil
	})
}

// place finds out which database the table is in, and how the server spells it.
func (c *catalog) place(name string) {
	if schema, table, ok := strings.Cut(name, "."); ok {
		c.database, c.name = schema, table
	} else {
		c.name = name
	}
	if v := c.session["lower_case_table_names"]; v == "1" {
		c.database, c.name = strings.ToLower(c.database), strings.ToLower(c.name)
	}
}

// readVariables reads the session's settings and which database it is in.
func (c *catalog) readVariables(ctx context.Context, conn conn) error {
	var version string
	if err := one(ctx, conn, "SELECT VERSION()", nil, &version); err != nil {
		return err
	}
	c.dialect.mariadb, c.dialect.snapshot = isMariaDB(version), snapshotIsolation(version)
	err := each(ctx, conn, c.dialect.show(variables), nil, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		c.session[strings.ToLower(name)] = value
		return err
	})
	if err != nil {
		return err
	}
	c.mariadb = strings.Contains(strings.ToLower(c.session["version"]), "mariadb")
	var database sql.NullString
	err = one(ctx, conn, "SELECT DATABASE(), CURRENT_USER()", nil, &database, &c.user)
	c.database = database.String
	return err
}

// readZones reads which clocks the session and the driver show.
func (c *catalog) readZones(ctx context.Context, conn conn) error {
	// A year of offsets, as the server reckons them: summer time shows.
	var months []string
	for n := range 12 {
		months = append(months, fmt.Sprintf("SELECT UTC_TIMESTAMP() + INTERVAL %d MONTH AS utc", n))
	}
	query := "SELECT TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', utc), TIMESTAMPDIFF(SECOND, utc, CONVERT_TZ(utc, '+00:00', @@session.time_zone)) FROM (" +
		strings.Join(months, " UNION ALL ") + ") AS months"
	err := each(ctx, conn, c.dialect.set(query, allRows), nil, func(rows *sql.Rows) error {
		var at int64
		var ahead sql.NullInt64
		err := rows.Scan(&at, &ahead)
		c.offsets = append(c.offsets, offset{time.Unix(at, 0).UTC(), time.Duration(ahead.Int64) * time.Second})
		return err
	})
	if err != nil {
		return err
	}
	return c.readDriver(ctx, conn)
}

// readDriver passes times to the driver as the user's statements do, and reads what it
// made of them: the loc of the DSN shows, also without parseTime.
func (c *catalog) readDriver(ctx context.Context, conn conn) error {
	args, dest, texts := make([]any, len(c.offsets)), make([]any, len(c.offsets)), make([]string, len(c.offsets))
	for i, o := range c.offsets {
		args[i], dest[i] = o.at, &texts[i]
	}
	query := "SELECT CAST(? AS CHAR)" + strings.Repeat(", CAST(? AS CHAR)", len(args)-1)
	err := each(ctx, conn, query, args, func(rows *sql.Rows) error { return rows.Scan(dest...) })
	for i, o := range c.offsets {
		shown, unclear := time.Parse(time.DateTime, texts[i])
		if err != nil || unclear != nil {
			c.written = nil // by something else than a clock
			return err
		}
		c.written = append(c.written, offset{o.at, shown.Sub(o.at)})
	}
	return nil
}

// probe looks whether the name means something that this user may read.
func (c *catalog) probe(ctx context.Context, conn conn, quoted string) error {
	err := each(ctx, conn, "SELECT 1 FROM "+quoted+" LIMIT 0", nil, func(*sql.Rows) error { return nil })
	switch number(err) {
	case errNoTable, errUnknownSchema:
		c.missing = "there is no table " + quoted
	case errNoDatabase:
		c.missing = "the table's name says no database, and none is selected"
	case errNoAccess, errNoTableAccess, errNoColumnAccess:
		c.refused = "user " + c.user + " may not read the table"
	case errBrokenView:
		c.kind = "VIEW"
	default:
		return err
	}
	return nil
}

// Where these queries want an empty text they write LEFT('-', 0): MariaDB has a mode in which
// empty quotes are NULL.

func (c *catalog) readTable(ctx context.Context, conn conn) error {
	const query = "SELECT table_type, COALESCE(engine, LEFT('-', 0)) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?"
	return c.each(ctx, conn, query, func(rows *sql.Rows) error { return rows.Scan(&c.kind, &c.engine) })
}

func (c *catalog) readColumns(ctx context.Context, conn conn) error {
	const query = `SELECT column_name, data_type, column_type, COALESCE(character_set_name, LEFT('-', 0)), COALESCE(collation_name, LEFT('-', 0)),
		is_nullable, column_default, extra, column_comment, COALESCE(character_maximum_length, 0), COALESCE(datetime_precision, 0), privileges
		FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position`
	return c.each(ctx, conn, query, func(rows *sql.Rows) error {
		var v column
		var nullable, extra string
		var standard sql.NullString
		if err := rows.Scan(&v.name, &v.data, &v.full, &v.charset, &v.collation, &nullable, &standard, &extra, &v.comment,
			&v.chars, &v.digits, &v.privileges); err != nil {
			return err
		}
		v.nullable = nullable == "YES"
		v.data = strings.ToLower(v.data)
		v.readExtra(extra)
		v.readDefault(standard, c.mariadb, strings.Contains(extra, "DEFAULT_GENERATED"))
		c.columns = append(c.columns, v)
		return nil
	})
}

// index is an index with its columns in order.
type index struct {
	name   string
	unique bool
	usable bool // a B-tree, visible, of columns
	parts  []part
}

// part is a column of an index.
type part struct {
	column string // lower case
	prefix bool   // only the start of the column
}

func (c *catalog) readIndexes(ctx context.Context, conn conn) error {
	hidden := "is_visible = 'NO'"
	if c.mariadb {
		hidden = "ignored = 'YES'"
	}
	query := "SELECT index_name, non_unique, COALESCE(column_name, LEFT('-', 0)), sub_part IS NOT NULL, index_type, " + hidden +
		" FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? ORDER BY index_name, seq_in_index"
	return c.each(ctx, conn, query, func(rows *sql.Rows) error {
		var name, kind string
		var p part
		var shared, hidden bool
		if err := rows.Scan(&name, &shared, &p.column, &p.prefix, &kind, &hidden); err != nil {
			return err
		}
		if n := len(c.indexes); n == 0 || c.indexes[n-1].name != name {
			c.indexes = append(c.indexes, index{name: name, unique: !shared, usable: true})
		}
		last := &c.indexes[len(c.indexes)-1]
		last.usable = last.usable && !hidden && kind == "BTREE" && p.column != ""
		p.column = strings.ToLower(p.column)
		last.parts = append(last.parts, p)
		return nil
	})
}

func (c *catalog) readTriggers(ctx context.Context, conn conn) error {
	const query = `SELECT trigger_name, COALESCE(action_statement, LEFT('-', 0)) FROM information_schema.triggers WHERE event_manipulation = 'UPDATE'
		AND event_object_schema = ? AND event_object_table = ? ORDER BY trigger_name`
	err := c.each(ctx, conn, query, func(rows *sql.Rows) error {
		var g trigger
		err := rows.Scan(&g.name, &g.source)
		c.triggers = append(c.triggers, g)
		return err
	})
	if err != nil {
		return err
	}
	const rights = `SELECT COUNT(*) FROM (
		SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER'
		UNION ALL SELECT 1 FROM information_schema.schema_privileges WHERE privilege_type = 'TRIGGER' AND ? LIKE table_schema
		UNION ALL SELECT 1 FROM information_schema.table_privileges WHERE privilege_type = 'TRIGGER' AND table_schema = ? AND table_name = ?
		) AS granted`
	var n int
	err = one(ctx, conn, rights, []any{c.database, c.database, c.name}, &n)
	c.triggersHidden = n == 0
	return err
}

func (c *catalog) readChecks(ctx context.Context, conn conn) error {
	query := `SELECT constraint_name, check_clause, FALSE FROM information_schema.check_constraints
		JOIN information_schema.table_constraints USING (constraint_schema, constraint_name)
		WHERE table_schema = ? AND table_name = ? ORDER BY constraint_name`
	if c.mariadb { // there, names are unique within a table only
		query = `SELECT constraint_name, check_clause, level = 'Column' FROM information_schema.check_constraints
		WHERE constraint_schema = ? AND table_name = ? ORDER BY constraint_name`
	}
	return c.each(ctx, conn, query, func(rows *sql.Rows) error {
		var v check
		err := rows.Scan(&v.name, &v.clause, &v.ofColumn)
		v.clause = strings.ReplaceAll(v.clause, `\'`, `'`)
		c.checks = append(c.checks, v)
		if f := c.column(v.name); v.ofColumn && f != nil {
			f.check = v.clause
		}
		return err
	})
}

func (c *catalog) readCollations(ctx context.Context, conn conn) error {
	for _, v := range c.columns {
		if v.collation == "" {
			continue
		}
		if c.mariadb {
			c.padded[v.collation] = !strings.Contains(v.collation, "_nopad_")
			continue
		}
		var pad string
		const query = "SELECT pad_attribute FROM information_schema.collations WHERE collation_name = ?"
		if err := one(ctx, conn, query, []any{v.collation}, &pad); err != nil {
			return err
		}
		c.padded[v.collation] = pad == "PAD SPACE"
	}
	return nil
}

// each runs a query whose arguments are the table's place.
func (c *catalog) each(ctx context.Context, conn conn, query string, scan func(*sql.Rows) error) error {
	return each(ctx, conn, c.dialect.set(query, allRows), []any{c.database, c.name}, scan)
}

func each(ctx context.Context, conn conn, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // its error is in rows.Err, or one came before
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one is each for a query whose one row is scanned into dest.
func one(ctx context.Context, conn conn, query string, args []any, dest ...any) error {
	return each(ctx, conn, query, args, func(rows *sql.Rows) error { return rows.Scan(dest...) })
}

// column returns the column of that name, nil if there is none. Names of columns
// differ by more than case.
func (c *catalog) column(name string) *column {
	for i := range c.columns {
		if strings.EqualFold(c.columns[i].name, name) {
			return &c.columns[i]
		}
	}
	return nil
}

package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

const (
	viewSuffix = "_view"
	dueIndex   = "dueclaim_due"
	// schemaComment is the table's comment; its number is the shape's version,
	// what a later Migrate upgrades from.
	schemaComment = "dueclaim schema 1"
	migrateLock   = "dueclaim.migrate"
	migrateWait   = 60 // seconds
	ddlWait       = 10 // seconds
	migrateTries  = 5
	blankHolder   = "                                                " // 48 bytes
)

// One secondary index serves the sweeps and the purge: live rows are ordered in
// it by due time and id, since their finished_at is NULL, and finished rows by
// when they were finished, since their due is NULL. A claim and an extension
// don't touch it. Byte strings are VARBINARY: no collation, no padding, no
// character set that a connection could convert.
//
// A new row's holder is blanks that no holder consists of, so that a claim writes
// into room that is there already. With an empty one each claim would make its row
// longer, and so split the pages, which INSERT leaves nearly full: half of a claim's
// cost. Longer holders than this are as right, and slower.
const createTable = `CREATE TABLE IF NOT EXISTS %s (
	queue VARBINARY(100) NOT NULL,
	id VARBINARY(255) NOT NULL,
	status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	due BIGINT NULL,
	planned BIGINT NOT NULL,
	token BIGINT NOT NULL,
	holder VARBINARY(64) NOT NULL DEFAULT '` + blankHolder + `',
	lease_until BIGINT NOT NULL DEFAULT 0,
	attempts INT NOT NULL DEFAULT 0,
	crashes INT NOT NULL DEFAULT 0,
	max_attempts INT NOT NULL DEFAULT 0,
	kind VARBINARY(100) NOT NULL DEFAULT x'',
	payload MEDIUMBLOB NULL,
	meta BLOB NULL,
	last_error BLOB NULL,
	call_id VARBINARY(64) NOT NULL DEFAULT x'',
	created_at BIGINT NOT NULL DEFAULT 0,
	finished_at BIGINT NULL,
	PRIMARY KEY (queue, id),
	KEY ` + dueIndex + ` (queue, due, finished_at, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COMMENT='` + schemaComment + `'`

// Migrate creates the table and the view <table>_view, or upgrades them; where
// they are as they should be it changes nothing and waits for no lock. Any number of
// processes may run it at once: a named lock lets one in at a time, and on a Galera cluster, where it holds
// on one node only, the nodes go one after the other (see awaitTurn). It needs
// CREATE, CREATE VIEW and DROP; working needs SELECT, INSERT, UPDATE and DELETE only.
//
// What it has to make it makes within ten seconds or not at all: while a transaction has
// read the view (an open console will do), all others would queue up behind the change.
func (s *Store) Migrate(ctx context.Context) error {
	err := s.migrate(ctx)
	// A cluster ends what is in the way of another node's change, even a look.
	for try := 1; number(err) == errDeadlock && try < migrateTries; try++ {
		err = s.migrate(ctx)
	}
	return s.fail("migrate", err)
}

func (s *Store) migrate(ctx context.Context) (err error) {
	if err := s.ready(ctx, s.db); err != nil {
		return err
	}
	if found, err := s.look(ctx, s.db); err != nil || found.complete() {
		return err
	}
	c, err := s.db.Conn(ctx) // the named lock belongs to a connection
	if err != nil {
		return err
	}
	defer drop(c) // and with it the lock, and how long it waits
	var got sql.NullInt64
	if err := one(ctx, c, fmt.Sprintf("SELECT GET_LOCK('%s', %d)", migrateLock, migrateWait), nil, &got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return fmt.Errorf("another Migrate has been running for %d seconds", migrateWait)
	}
	if _, err := c.ExecContext(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", ddlWait)); err != nil {
		return err
	}
	return s.build(ctx, c)
}

// build makes what is missing or not as it should be.
func (s *Store) build(ctx context.Context, c *sql.Conn) error {
	found, err := s.look(ctx, c)
	if err != nil || found.complete() {
		return err
	}
	made := false
	if !found.table {
		if made, err = s.makeTable(ctx, c); err != nil {
			return err
		}
	}
	if !made {
		if err := s.awaitTurn(ctx, c); err != nil {
			return err
		}
	}
	if found, err = s.look(ctx, c); err != nil || found.view {
		return err
	}
	_, err = c.ExecContext(ctx, s.viewStatement(found.otherView))
	switch number(err) {
	case errTableExists: // another node's
		found, err := s.look(ctx, c)
		if err == nil && !found.view {
			err = fmt.Errorf("%s%s exists, and is no view of dueclaim's", s.table, viewSuffix)
		}
		return err
	case errLockTimeout:
		return fmt.Errorf("a transaction that has read %s%s has been open for more than %d seconds (a console, a report?), and the view can't be changed before it ends: %w", s.table, viewSuffix, ddlWait, err)
	}
	return err
}

// found is what there is of the table and its view.
type found struct {
	table     bool
	view      bool // as it should be
	otherView bool // another one than it should be
}

func (f found) complete() bool { return f.table && f.view }

// look reads what there is, from the server's catalogue, which waits for nobody. It
// refuses a table that isn't dueclaim's or is newer than this code. A view is right when
// its columns are: the servers keep its text in words of their own.
func (s *Store) look(ctx context.Context, conn conn) (f found, err error) {
	// Not SHOW CREATE TABLE, which leaves comments out under sql_mode ANSI. The
	// names were checked, so quotes do; the comparison is the server's own.
	schema, name, ok := strings.Cut(s.table, ".")
	if ok {
		schema = "'" + schema + "'"
	} else {
		schema, name = "DATABASE()", s.table
	}
	d := s.dialect()
	query := "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = " + schema + " AND table_name = '" + name + "'"
	err = each(ctx, conn, d.set(query, shortWait, allRows), nil, func(rows *sql.Rows) error {
		var name, comment string
		if err := rows.Scan(&name, &comment); err != nil {
			return err
		}
		if comment != schemaComment {
			return fmt.Errorf("table %s exists, but its comment is %q, not %q: it is another program's, or of a newer version", s.table, comment, schemaComment)
		}
		f.table = true
		return nil
	})
	if err != nil || !f.table {
		return f, err
	}
	var columns []string
	query = "SELECT column_name, ordinal_position FROM information_schema.columns WHERE table_schema = " + schema + " AND table_name = '" + name + viewSuffix + "' ORDER BY ordinal_position"
	err = each(ctx, conn, d.set(query, shortWait, allRows), nil, func(rows *sql.Rows) error {
		var column string
		var place int
		err := rows.Scan(&column, &place)
		columns = append(columns, strings.ToLower(column))
		return err
	})
	f.view = slices.Equal(columns, viewNames())
	f.otherView = len(columns) > 0 && !f.view
	return f, err
}

// viewStatement makes the view for people. Its times are computed from the start
// of 1970, not by FROM_UNIXTIME, which depends on the session's time zone and
// ends in 2038.
func (s *Store) viewStatement(replace bool) string {
	create := "CREATE"
	if replace {
		create = "CREATE OR REPLACE"
	}
	var columns []string
	for _, c := range viewColumns() {
		columns = append(columns, c.as+" AS "+c.name)
	}
	return create + " SQL SECURITY INVOKER VIEW " + claim.QuoteTable(s.table+viewSuffix, '`') + " AS SELECT " + strings.Join(columns, ", ") + " FROM " + s.quoted
}

type viewColumn struct{ name, as string }

func viewColumns() []viewColumn {
	at := func(column string) viewColumn {
		return viewColumn{column, "TIMESTAMP'1970-01-01 00:00:00.000' + INTERVAL " + column + " * 1000 MICROSECOND"}
	}
	words := func(column string) viewColumn {
		return viewColumn{column, "CONVERT(" + column + " USING utf8mb4)"}
	}
	plain := func(column string) viewColumn { return viewColumn{column, column} }
	return []viewColumn{
		words("queue"), words("id"), plain("status"), at("due"), at("planned"), plain("token"),
		{"holder", "CONVERT(TRIM(TRAILING ' ' FROM holder) USING utf8mb4)"},
		{"lease_until", "TIMESTAMP'1970-01-01 00:00:00.000' + INTERVAL NULLIF(lease_until, 0) * 1000 MICROSECOND"},
		plain("attempts"), plain("crashes"), plain("max_attempts"), words("kind"), plain("payload"), plain("meta"),
		words("last_error"), words("call_id"), at("created_at"), at("finished_at"),
	}
}

func viewNames() (names []string) {
	for _, c := range viewColumns() {
		names = append(names, c.name)
	}
	return names
}

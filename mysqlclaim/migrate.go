package mysqlclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	migrateWait   = 60                                                 // seconds
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
	kind VARBINARY(100) NOT NULL DEFAULT '',
	payload MEDIUMBLOB NULL,
	meta BLOB NULL,
	last_error BLOB NULL,
	call_id VARBINARY(64) NOT NULL DEFAULT '',
	created_at BIGINT NOT NULL DEFAULT 0,
	finished_at BIGINT NULL,
	PRIMARY KEY (queue, id),
	KEY ` + dueIndex + ` (queue, due, finished_at, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COMMENT='` + schemaComment + `'`

// Migrate creates the table and the view <table>_view, or upgrades them; where
// they are as they should be it changes nothing. Any number of processes may run
// it at once: a named lock lets one in at a time. It needs CREATE, CREATE VIEW
// and DROP; working needs SELECT, INSERT, UPDATE and DELETE only.
func (s *Store) Migrate(ctx context.Context) error {
	return s.fail("migrate", s.migrate(ctx))
}

func (s *Store) migrate(ctx context.Context) (err error) {
	if err := s.ready(ctx); err != nil {
		return err
	}
	c, err := s.db.Conn(ctx) // the named lock belongs to a connection
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var got sql.NullInt64
	if err := c.QueryRowContext(ctx, fmt.Sprintf("SELECT GET_LOCK('%s', %d)", migrateLock, migrateWait)).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return fmt.Errorf("another Migrate has been running for %d seconds", migrateWait)
	}
	defer func() {
		_, unlock := c.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK('"+migrateLock+"')")
		err = errors.Join(err, unlock)
	}()
	if _, err := c.ExecContext(ctx, fmt.Sprintf(createTable, s.quoted)); err != nil {
		return err
	}
	if err := s.checkVersion(ctx, c); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, s.viewStatement())
	return err
}

// checkVersion refuses a table that isn't dueclaim's or is newer than this code.
func (s *Store) checkVersion(ctx context.Context, c *sql.Conn) error {
	// Not SHOW CREATE TABLE, which leaves comments out under sql_mode ANSI. The
	// names were checked, so quotes do; the comparison is the server's own.
	schema, name, ok := strings.Cut(s.table, ".")
	if ok {
		schema = "'" + schema + "'"
	} else {
		schema, name = "DATABASE()", s.table
	}
	query := "SELECT table_comment FROM information_schema.tables WHERE table_schema = " + schema + " AND table_name = '" + name + "'"
	var comment string
	if err := c.QueryRowContext(ctx, query).Scan(&comment); err != nil {
		return err
	}
	if comment != schemaComment {
		return fmt.Errorf("table %s exists, but its comment is %q, not %q: it is another program's, or of a newer version", s.table, comment, schemaComment)
	}
	return nil
}

// viewStatement makes the view for people. Its times are computed from the start
// of 1970, not by FROM_UNIXTIME, which depends on the session's time zone and
// ends in 2038.
func (s *Store) viewStatement() string {
	at := func(column string) string {
		return fmt.Sprintf("TIMESTAMP'1970-01-01 00:00:00.000' + INTERVAL %s * 1000 MICROSECOND AS %[1]s", column)
	}
	words := func(column string) string { return fmt.Sprintf("CONVERT(%s USING utf8mb4) AS %[1]s", column) }
	return "CREATE OR REPLACE SQL SECURITY INVOKER VIEW " + claim.QuoteTable(s.table+viewSuffix, '`') + " AS SELECT " +
		strings.Join([]string{
			words("queue"), words("id"), "status", at("due"), at("planned"), "token", "CONVERT(TRIM(TRAILING ' ' FROM holder) USING utf8mb4) AS holder",
			"TIMESTAMP'1970-01-01 00:00:00.000' + INTERVAL NULLIF(lease_until, 0) * 1000 MICROSECOND AS lease_until",
			"attempts", "crashes", "max_attempts", words("kind"), "payload", "meta", words("last_error"), words("call_id"),
			at("created_at"), at("finished_at"),
		}, ", ") + " FROM " + s.quoted
}

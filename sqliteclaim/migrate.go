package sqliteclaim

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// schemaVersion is the version of the tables that this code makes and needs.
const schemaVersion = 1

// The table is STRICT, so that no column holds a value of another type than it
// says. It has a rowid: WITHOUT it the rows themselves would stand in the inner
// pages of the B-tree that finds them, which makes it deep, by long payloads above
// all; measured, a claim of 500 short rows takes a quarter more time. The
// partial indexes leave out what nobody looks for: due is NULL in finished rows,
// and neither pending, running nor dead ones are to be purged.
//
// A claim changes no column of either index. Payload and meta come last: what a
// claim looks at stands on the row's first page.
const schemaSQL = `
CREATE TABLE $table (
	queue        TEXT    NOT NULL COLLATE BINARY,
	id           TEXT    NOT NULL COLLATE BINARY,
	status       TEXT    NOT NULL,
	due          INTEGER,
	planned      INTEGER NOT NULL,
	token        INTEGER NOT NULL,
	holder       TEXT    NOT NULL DEFAULT '',
	lease_until  INTEGER NOT NULL DEFAULT 0,
	attempts     INTEGER NOT NULL DEFAULT 0,
	crashes      INTEGER NOT NULL DEFAULT 0,
	max_attempts INTEGER NOT NULL,
	kind         TEXT    NOT NULL,
	call_id      TEXT    NOT NULL,
	created_at   INTEGER NOT NULL,
	finished_at  INTEGER,
	last_error   TEXT    NOT NULL DEFAULT '',
	meta         BLOB,
	payload      BLOB,
	PRIMARY KEY (queue, id)
) STRICT;

CREATE INDEX $due ON $table (queue, due, id) WHERE due IS NOT NULL;

CREATE INDEX $finished ON $table (queue, finished_at, id) WHERE status IN ('done', 'cancelled');

CREATE VIEW $view AS SELECT
	queue, id, status, kind,
	strftime('%Y-%m-%dT%H:%M:%fZ', due         / 1000.0, 'unixepoch') AS due,
	strftime('%Y-%m-%dT%H:%M:%fZ', planned     / 1000.0, 'unixepoch') AS planned,
	holder, token,
	strftime('%Y-%m-%dT%H:%M:%fZ', nullif(lease_until, 0) / 1000.0, 'unixepoch') AS lease_until,
	attempts, crashes, max_attempts, last_error, length(payload) AS payload_bytes,
	strftime('%Y-%m-%dT%H:%M:%fZ', created_at  / 1000.0, 'unixepoch') AS created_at,
	strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at
FROM $table;

CREATE TABLE $schema (version INTEGER NOT NULL) STRICT;

INSERT INTO $schema (version) VALUES (1);
`

// Migrate creates the table with its indexes and the view <table>_view, which
// shows times as times, or upgrades them from an earlier version. It does nothing
// where they are up to date. Any number of processes may run it at once. It fails
// on a table that it didn't make, and on one made by a later version.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("sqliteclaim: migrate: %w", explain(err))
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) error {
	// The usual case needs no lock.
	var version int
	err := s.wait(ctx, func() (err error) {
		version, err = s.version(ctx, newOnSQL(s.db))
		return err
	})
	if err != nil || version == schemaVersion {
		return err
	}
	return s.write(ctx, maxItems, func(q querier) error {
		version, err := s.version(ctx, q) // again: somebody may have been faster
		if err != nil || version == schemaVersion {
			return err
		}
		names := strings.NewReplacer(
			"$table", quoted(s.table, ""), "$due", quoted(s.table, "_due"), "$finished", quoted(s.table, "_finished"),
			"$view", quoted(s.table, "_view"), "$schema", quoted(s.table, "_schema"))
		_, err = q.exec(ctx, names.Replace(schemaSQL))
		return err
	})
}

// version returns the version of the tables that are there, 0 for none.
func (s *Store) version(ctx context.Context, q querier) (version int, err error) {
	found := map[string]bool{}
	err = q.query(ctx, `SELECT lower(name) FROM sqlite_schema WHERE lower(name) IN (lower(?1), lower(?2))`,
		func(scan scanner) error {
			var name string
			err := scan(&name)
			found[name] = true
			return err
		}, s.table, s.table+"_schema")
	table, schema := strings.ToLower(s.table), strings.ToLower(s.table+"_schema")
	switch {
	case err != nil:
		return 0, err
	case !found[table] && !found[schema]:
		return 0, nil
	case !found[table] || !found[schema]:
		return 0, fmt.Errorf("%s is there, but not as Migrate makes it (table and %s_schema); choose another name in Options.Table, or drop it", s.table, s.table)
	}
	err = q.query(ctx, "SELECT version FROM "+quoted(s.table, "_schema"), func(scan scanner) error { return scan(&version) })
	switch {
	case err != nil:
		return 0, err
	case version == 0:
		return 0, errors.New(s.table + "_schema has no row; want one with the version of " + s.table)
	case version > schemaVersion:
		return 0, fmt.Errorf("%s has version %d, made by a later dueclaim; this one knows up to %d", s.table, version, schemaVersion)
	}
	return version, nil
}

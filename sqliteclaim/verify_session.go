package sqliteclaim

import (
	"context"
	"database/sql"

	"github.com/dueclaim/dueclaim/claim"
)

// readOnlyConn is what the driver's connections can tell.
type readOnlyConn interface {
	IsReadOnly(schema string) (bool, error)
}

// session looks at the file and at the settings of the connection.
func (v *verification) session(ctx context.Context) error {
	var file, journal string
	var synchronous, busy int
	var queryOnly bool
	for _, read := range []struct {
		query string
		dest  any
	}{
		{"SELECT file FROM pragma_database_list WHERE name = 'main'", &file},
		{"PRAGMA journal_mode", &journal},
		{"PRAGMA synchronous", &synchronous},
		{"PRAGMA busy_timeout", &busy},
		{"PRAGMA query_only", &queryOnly},
	} {
		if err := v.conn.QueryRowContext(ctx, read.query).Scan(read.dest); err != nil {
			return err
		}
	}
	readOnly, err := readOnly(v.conn)
	if err != nil {
		return err
	}
	switch {
	case file == "":
		v.fs.Add(claim.Fault, "in-memory", "", "the database is in memory: each connection has one of its own, and no other process sees it", "open a file")
	case readOnly:
		v.fs.Add(claim.Fault, "read-only", "", "the file is opened for reading only, or can't be written to", "check its rights and those on its directory, and leave mode=ro and immutable out of the DSN")
	case queryOnly:
		v.fs.Add(claim.Fault, "read-only", "", "query_only is set: the connection refuses to write", "PRAGMA query_only = 0")
	}
	if file != "" && journal != "wal" {
		v.fs.Add(claim.Advice, "journal-mode", "", "journal_mode is "+journal+": who reads keeps others from writing, and the other way round", "PRAGMA journal_mode = WAL")
	}
	switch {
	case file == "":
	case synchronous == 0:
		v.fs.Add(claim.Warning, "synchronous-off", "", "synchronous is OFF: a loss of power can take back what was committed, and spoil the file", "set _pragma=synchronous(FULL) in the DSN")
	case synchronous == 1 && journal == "wal":
		v.fs.Add(claim.Advice, "synchronous-normal", "", "synchronous is NORMAL: a loss of power can take back the last completions, which then run again", "set _pragma=synchronous(FULL) in the DSN")
	}
	if busy <= 0 && !v.table.patient {
		v.fs.Add(claim.Advice, "busy-timeout", "", "there is no busy_timeout: a call fails at once while another one writes, and is repeated", "set _pragma=busy_timeout(5000) in the DSN")
	}
	return nil
}

// readOnly tells whether the connection's file can't be written to, as far as
// the driver can tell.
func readOnly(conn *sql.Conn) (is bool, err error) {
	err = conn.Raw(func(c any) (err error) {
		if c, ok := c.(readOnlyConn); ok {
			is, err = c.IsReadOnly("main")
		}
		return err
	})
	return is, err
}

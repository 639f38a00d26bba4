package sqliteclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dueclaim/dueclaim/core"
)

// The settings of each connection that Open makes. busy_timeout is how long a
// statement waits for another process's transaction, unless its context ends
// before. foreign_keys is for the user's own tables in the file.
const settings = "?_txlock=immediate&_busy_timeout=10000&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"

// Open opens the SQLite file at path, creating it when it isn't there, with the
// settings that the protocol needs: WAL, synchronous FULL, immediate transactions,
// a busy time-out, one connection. Close closes it. Call Migrate before the first
// use.
//
// path is taken as it is: no character in it starts an option, so
// "file:" URIs are refused, and so is ":memory:" (see the package comment). The
// directory must be there already, and the process must be allowed to write in
// it, as SQLite keeps two more files beside the database (-wal and -shm).
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	s, err := open(ctx, path, options)
	if err != nil {
		return nil, fmt.Errorf("sqliteclaim: open %q: %w", path, explain(err))
	}
	return s, nil
}

func open(ctx context.Context, path string, options Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dsn, err := dataSource(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s, err := newStore(db, options)
	if err == nil {
		s.owned = true
		err = s.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// dataSource is the driver's name for the file at path.
func dataSource(path string) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("%w: path is empty", core.ErrInvalid)
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("%w: path has a NUL byte", core.ErrInvalid)
	case path == ":memory:":
		return "", errMemory
	case strings.HasPrefix(path, "file:"):
		return "", fmt.Errorf("%w: want a path, not a URI; for a DSN of your own use New (or ./file:… for a file of that name)", core.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: it is not a regular file", core.ErrInvalid)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("its directory is not there: %w", err)
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // a drive letter
		slashed = "/" + slashed
	}
	return "file://" + (&url.URL{Path: slashed}).EscapedPath() + settings, nil
}

var errMemory = fmt.Errorf("%w: a database in memory; each connection would have one of its own that no other process sees: use a file, or claim.NewMemory", core.ErrInvalid)

// prepare puts the file into WAL mode, which it then keeps, and checks that it can
// be written to.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.useWAL(ctx); err != nil {
		return err
	}
	// SQLite opens a file that it may not write to for reading, without a word.
	err := s.write(ctx, func(querier) error { return nil })
	if code(err) == sqlite3.SQLITE_BUSY {
		return nil // somebody else is writing for long; so the file can be written to
	}
	return err
}

// useWAL changes the journal mode. SQLite refuses that at once, without the busy
// time-out, while another connection holds a lock, as when several processes
// start together on a new file.
func (s *Store) useWAL(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		var mode string
		err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("journal_mode is %q after PRAGMA journal_mode = WAL; is the file on a disk of this host?", mode)
		case code(err) != sqlite3.SQLITE_BUSY:
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// verify checks a database of the caller's.
func (s *Store) verify(ctx context.Context) error {
	var file, journal string
	var synchronous, busy int
	for _, check := range []struct {
		query string
		dest  any
	}{
		{"SELECT file FROM pragma_database_list WHERE name = 'main'", &file},
		{"PRAGMA journal_mode", &journal},
		{"PRAGMA synchronous", &synchronous},
		{"PRAGMA busy_timeout", &busy},
	} {
		if err := s.db.QueryRowContext(ctx, check.query).Scan(check.dest); err != nil {
			return explain(err)
		}
	}
	var wrong []string
	switch {
	case file == "":
		return errMemory
	case journal != "wal":
		wrong = append(wrong, fmt.Sprintf("journal_mode is %s; set it with _pragma=journal_mode(WAL) in the DSN", journal))
	}
	if synchronous < 2 {
		wrong = append(wrong, "synchronous is below FULL, so that a loss of power could take back a completion; set it with _pragma=synchronous(FULL) in the DSN")
	}
	if busy <= 0 {
		wrong = append(wrong, "there is no busy_timeout, so that a call fails at once when another one writes; set it with _pragma=busy_timeout(5000) in the DSN")
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: %s", core.ErrInvalid, strings.Join(wrong, "; and "))
	}
	return nil
}

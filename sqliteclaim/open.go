package sqliteclaim

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dueclaim/dueclaim/core"
)

// The settings of each connection that Open makes; journal_mode is one of the
// file, see useWAL. foreign_keys is for the user's own tables in the file.
const settings = "?_txlock=immediate&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"

// usersSettings are added for the connections of Store.DB. Those that the Store
// itself works on wait for locks in database.wait.
const usersSettings = "&_busy_timeout=10000"

// Open opens the SQLite file at path, creating it when it isn't there, with the
// settings that the protocol needs: WAL, synchronous FULL, immediate transactions,
// a busy time-out. Close closes it. Call Migrate before the first
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
	// The options first: what they are refused for should leave no new file.
	s, err := newStore(database{}, options)
	if err != nil {
		return nil, err
	}
	s.database, err = openDatabase(ctx, path)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openDatabase opens the file at path as Open says.
func openDatabase(ctx context.Context, path string) (database, error) {
	if err := ctx.Err(); err != nil {
		return database{}, err
	}
	dsn, err := dataSource(path)
	if err != nil {
		return database{}, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return database{}, err
	}
	db.SetMaxOpenConns(1)
	users, err := sql.Open("sqlite", dsn+usersSettings)
	if err != nil {
		return database{}, errors.Join(err, db.Close())
	}
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return database{}, errors.Join(err, db.Close(), users.Close())
	}
	d := database{db: db, patient: true, users: users}
	d.writer = newWriter(true, func(ctx context.Context) (session, error) { return newDirect(ctx, connector) })
	if err := d.prepare(ctx); err != nil {
		return database{}, errors.Join(err, d.close())
	}
	return d, nil
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
func (d database) prepare(ctx context.Context) error {
	if err := d.useWAL(ctx); err != nil {
		return err
	}
	return d.probe(ctx)
}

// probe fails when the file can't be written to: SQLite then opens it for reading
// without a word, and lets even BEGIN IMMEDIATE pass. It writes nothing.
func (d database) probe(ctx context.Context) (err error) {
	errRollBack := errors.New("roll back")
	hasty := newWriter(false, d.writer.open)
	defer func() { err = errors.Join(err, hasty.close()) }()
	err = hasty.write(ctx, 0, func(q querier) error {
		_, err := q.exec(ctx, "PRAGMA user_version = 0")
		return cmp.Or(err, errRollBack)
	})
	// Whoever only has to wait for another's lock could write.
	if errors.Is(err, errRollBack) || code(err) == sqlite3.SQLITE_BUSY {
		return nil
	}
	return err
}

// useWAL changes the journal mode. While another connection has a lock SQLite
// refuses that, whatever the busy time-out, as when several processes start
// together on a new file.
func (d database) useWAL(ctx context.Context) error {
	var mode string
	err := d.wait(ctx, func() error {
		return d.db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
	})
	if err == nil && mode != "wal" {
		err = fmt.Errorf("journal_mode is %q after PRAGMA journal_mode = WAL; is the file on a disk of this host?", mode)
	}
	return err
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

package sqliteclaim

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// querier runs statements, in a transaction that somebody else began.
type querier interface {
	// exec runs a statement and returns how many rows it changed.
	exec(ctx context.Context, text string, args ...any) (int64, error)
	// query calls row for each row, and has released the statement when it returns.
	query(ctx context.Context, text string, row func(scanner) error, args ...any) error
}

// database is a file with what the calls on it need to know about its connections.
type database struct {
	db      *sql.DB // reads
	writer  *writer
	patient bool    // db has no busy time-out: wait waits for locks
	users   *sql.DB // of an opened one, with a busy time-out; nil for the user's own
}

// usersDatabase is one that the caller opened.
func usersDatabase(db *sql.DB) database {
	return database{db: db, writer: newWriter(false, func(ctx context.Context) (session, error) { return pooledSession(ctx, db) })}
}

// handle returns the connections that are for the user's own statements.
func (d database) handle() *sql.DB {
	if d.users != nil {
		return d.users
	}
	return d.db
}

// close closes an opened database, and leaves the user's own open.
func (d database) close() error {
	if d.users == nil {
		return nil
	}
	return errors.Join(d.writer.close(), d.db.Close(), d.users.Close())
}

// write runs f, which is about so many items, in a transaction; see writer.
func (d database) write(ctx context.Context, items int, f func(q querier) error) error {
	return d.writer.write(ctx, items, f)
}

// wait calls f, which reads, as waitForLock does on an opened Store.
func (d database) wait(ctx context.Context, f func() error) error {
	if !d.patient {
		return f()
	}
	return waitForLock(ctx, f)
}

// How long a statement of an opened Store waits for other processes, and how
// often it looks. SQLite's own wait backs off to 100 ms, which under load keeps a
// process that lost the race a few times waiting for seconds; a look costs some
// 20 µs.
const (
	busyTimeout = 10 * time.Second
	busyLook    = time.Millisecond
)

// waitForLock calls f, which takes a lock or reads, and calls it again for as long as
// the file is locked, ctx isn't done and the busy time-out isn't over.
func waitForLock(ctx context.Context, f func() error) error {
	err := f()
	if code(err) != sqlite3.SQLITE_BUSY {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, busyTimeout, err)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for looks := 0; code(err) == sqlite3.SQLITE_BUSY; looks++ {
		// The random part keeps processes from looking in step.
		pause := busyLook/4 + rand.N(busyLook)
		if looks > 500 {
			pause *= 10
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		err = f()
	}
	return err
}

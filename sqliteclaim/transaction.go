package sqliteclaim

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// querier is what a *sql.Conn and a *sql.Tx have in common.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// database is a file with what the calls on it need to know about its connections.
type database struct {
	db      *sql.DB
	patient bool    // db has no busy time-out: wait waits for locks
	users   *sql.DB // of an opened one, with a busy time-out; nil for the user's own
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
	return errors.Join(d.db.Close(), d.users.Close())
}

// write runs f in a transaction that holds the write lock from its start: one
// that began by reading could not wait for the lock later.
//
// It doesn't use sql.Tx, which rolls back in a goroutine of its own when ctx is
// done: the transaction might still be open when the call has returned.
func (d database) write(ctx context.Context, f func(q querier) error) (err error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	always := context.WithoutCancel(ctx)
	defer func() {
		if err != nil {
			rollback(always, conn)
		}
		_ = conn.Close() // gives it back to the pool
	}()
	err = d.wait(ctx, func() error {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return err
	}
	if err := f(conn); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// A commit waits for no lock in WAL mode; when ctx is done in the middle of
	// it, its outcome should be known still.
	_, err = conn.ExecContext(always, "COMMIT")
	return err
}

// rollback leaves conn without a transaction, or marks it as bad so that the
// pool drops it. There is none when BEGIN failed or SQLite rolled back by itself;
// then ROLLBACK fails, and BEGIN says whether that was the reason.
func rollback(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err == nil {
		return
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err == nil {
		if _, err = conn.ExecContext(ctx, "ROLLBACK"); err == nil {
			return
		}
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

// How long a statement of an opened Store waits for other processes, and how
// often it looks. SQLite's own wait backs off to 100 ms, which under load keeps a
// process that lost the race a few times waiting for seconds; a look costs some
// 20 µs.
const (
	busyTimeout = 10 * time.Second
	busyLook    = time.Millisecond
)

// wait calls f, which takes a lock or reads, and on an opened Store calls it again
// for as long as the file is locked, ctx isn't done and the busy time-out isn't
// over.
func (d database) wait(ctx context.Context, f func() error) error {
	err := f()
	if !d.patient || code(err) != sqlite3.SQLITE_BUSY {
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

// batch runs statements once for each item of a batch. SQLite is in the process:
// there is no round trip to save, and a statement on one row always finds it by
// its key, which the planner doesn't always do for a join with the batch.
//
// Between BEGIN and COMMIT nothing waits for a lock, so the statements run without
// ctx, which spares the driver a goroutine for each; run looks at ctx itself.
type batch struct {
	q          querier
	statements map[string]*sql.Stmt
}

func newBatch(q querier) *batch { return &batch{q, map[string]*sql.Stmt{}} }

// run runs a statement and returns how many rows it changed.
func (b *batch) run(ctx context.Context, query string, args ...any) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	always := context.WithoutCancel(ctx)
	statement, ok := b.statements[query]
	if !ok {
		var err error
		if statement, err = b.q.PrepareContext(always, query); err != nil {
			return 0, err
		}
		b.statements[query] = statement
	}
	result, err := statement.ExecContext(always, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (b *batch) close() {
	for _, statement := range b.statements {
		_ = statement.Close()
	}
}

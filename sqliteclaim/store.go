package sqliteclaim

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Options are the options of a Store; the zero value is fine.
type Options struct {
	// Table is the name of the tasks' table: letters, digits, _ and $, not
	// starting with a digit, at most 54 bytes; "" stands for claim.DefaultTable.
	// Its companions are <table>_view, <table>_schema and two indexes.
	Table string
	// Queue is the queue that the Store works on, one of any number in a table;
	// "" stands for claim.DefaultQueue.
	Queue string
	// DeleteFinished deletes tasks at once when they are done or cancelled,
	// instead of keeping them for Purge. A repeat after a lost reply then can't
	// recognise them; see the methods of [core.Store]. Dead ones are kept anyhow.
	DeleteFinished bool
}

// Store is a [core.Store] and [core.Purger] on one queue of a SQLite file. It is
// safe for concurrent use. Calls fail with SQLITE_BUSY when other processes hold
// the file's write lock for longer than the busy time-out; core repeats them.
type Store struct {
	db     *sql.DB
	owned  bool
	queue  string
	table  string // unquoted
	delete bool
	sql    statements
}

var (
	_ core.Store  = (*Store)(nil)
	_ core.Purger = (*Store)(nil)
)

// New returns a Store on a database that the caller opened with the driver
// "sqlite" of modernc.org/sqlite and goes on to own. Call Migrate before its
// first use. New connects, and fails with an error that says what to set when
// the database is in memory or its settings break the protocol: it needs
// journal_mode WAL, synchronous FULL or EXTRA and a busy_timeout. As all but the
// first are settings of a connection, put them into the DSN, where each new
// connection gets them:
//
//	file:/path/app.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
//
// _txlock=immediate is for your own transactions: one that reads first and writes
// later fails at once with SQLITE_BUSY when another one wrote in between. New
// can't check that one, and Store doesn't depend on it.
func New(db *sql.DB, options Options) (*Store, error) {
	s, err := newStore(db, options)
	if err != nil {
		return nil, err
	}
	if err := s.verify(context.Background()); err != nil {
		return nil, fmt.Errorf("sqliteclaim: new: %w", err)
	}
	return s, nil
}

func newStore(db *sql.DB, options Options) (*Store, error) {
	table := cmp.Or(options.Table, claim.DefaultTable)
	queue := cmp.Or(options.Queue, claim.DefaultQueue)
	if err := checkTable(table); err != nil {
		return nil, fmt.Errorf("sqliteclaim: %w", err)
	}
	if err := claim.CheckQueue(queue); err != nil {
		return nil, fmt.Errorf("sqliteclaim: %w", err)
	}
	return &Store{db: db, queue: queue, table: table, delete: options.DeleteFinished, sql: newStatements(table)}, nil
}

// DB returns the database, for transactions with InsertTx and SettleTx. That of
// an opened Store has one connection: while a transaction of yours is open, all
// other calls wait, so keep it short, and call no other method of the Store from
// inside it.
func (s *Store) DB() *sql.DB { return s.db }

// Close closes the file that Open opened. On a Store from New it does nothing:
// the database is the caller's.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	return s.db.Close()
}

// querier is what a *sql.Conn and a *sql.Tx have in common.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// write runs f in a transaction that holds the write lock from its start: one
// that began by reading could not wait for the lock later.
//
// It doesn't use sql.Tx, which rolls back in a goroutine of its own when ctx is
// done: the transaction might still be open when the call has returned.
func (s *Store) write(ctx context.Context, f func(q querier) error) (err error) {
	conn, err := s.db.Conn(ctx)
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
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
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

package sqliteclaim

import (
	"cmp"
	"context"
	"database/sql"
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
	database
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
	s, err := newStore(usersDatabase(db), options)
	if err != nil {
		return nil, err
	}
	if err := s.verify(context.Background()); err != nil {
		return nil, fmt.Errorf("sqliteclaim: new: %w", err)
	}
	return s, nil
}

func newStore(d database, options Options) (*Store, error) {
	table := cmp.Or(options.Table, claim.DefaultTable)
	queue := cmp.Or(options.Queue, claim.DefaultQueue)
	if err := checkTable(table); err != nil {
		return nil, fmt.Errorf("sqliteclaim: %w", err)
	}
	if err := claim.CheckQueue(queue); err != nil {
		return nil, fmt.Errorf("sqliteclaim: %w", err)
	}
	return &Store{database: d, queue: queue, table: table, delete: options.DeleteFinished, sql: newStatements(table)}, nil
}

// DB returns the database, for transactions with InsertTx and SettleTx. That of an
// opened Store has connections of its own, but a file has one writer: while a
// transaction of yours is open, all calls that write wait, those of other
// processes too. So keep it short, and call no method of the Store inside it but
// those two and Waiting.
func (s *Store) DB() *sql.DB { return s.handle() }

// Close closes the file that Open opened. On a Store from New it does nothing:
// the database is the caller's.
func (s *Store) Close() error { return s.close() }

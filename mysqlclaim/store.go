package mysqlclaim

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.Store      = (*Store)(nil)
	_ core.TimeSource = (*Store)(nil)
	_ core.Purger     = (*Store)(nil)
)

const (
	// chunkRows bounds the rows of a statement: short ones, that hold their locks
	// for milliseconds. It is under MariaDB's in_predicate_conversion_threshold
	// (1,000), beyond which an IN list becomes a join.
	chunkRows = 500
	// chunkBytes bounds a statement's text beyond its first row.
	chunkBytes = 1 << 20
)

// Options says which table and queue a Store works on. The zero value is valid.
type Options struct {
	// Table is the managed table, "name" or "database.name" of letters, digits, _
	// and $; each part at most 58 bytes. Default claim.DefaultTable.
	Table string
	// Queue separates the tasks of one table; 1 to 100 bytes of valid UTF-8,
	// compared as bytes. Default claim.DefaultQueue.
	Queue string
	// DeleteFinished deletes done and cancelled rows at once instead of leaving
	// them to Purge. A repeat of an Insert whose reply was lost then can't be
	// recognised once the task is done, and runs it again.
	DeleteFinished bool
}

// Store keeps one queue's tasks in a table of MySQL or MariaDB. Its methods may
// be called concurrently.
type Store struct {
	db             *sql.DB
	table          string // as given, for messages
	quoted         string
	queue          string
	deleteFinished bool
	checked        atomic.Bool // the server was found fit
	mariadb        atomic.Bool // and is a MariaDB
}

// New returns a Store on db, which it never closes. It doesn't talk to the
// server; the table is made by Migrate. Errors are core.ErrInvalid for a name
// that isn't allowed.
func New(db *sql.DB, opts Options) (*Store, error) {
	table := cmp.Or(opts.Table, claim.DefaultTable)
	queue := cmp.Or(opts.Queue, claim.DefaultQueue)
	if db == nil {
		return nil, fmt.Errorf("mysqlclaim: new: %w: db is nil", core.ErrInvalid)
	}
	if err := claim.CheckTable(table, len(viewSuffix)); err != nil {
		return nil, fmt.Errorf("mysqlclaim: new: %w", err)
	}
	if err := claim.CheckQueue(queue); err != nil {
		return nil, fmt.Errorf("mysqlclaim: new: %w", err)
	}
	return &Store{
		db: db, table: table, quoted: claim.QuoteTable(table, '`'), queue: queue,
		deleteFinished: opts.DeleteFinished,
	}, nil
}

// runner is where statements run and how they treat locks.
type runner struct {
	conn conn
	// skip is how a changing statement treats locked rows, read how a read-back
	// sees them.
	skip, read string
	// direct is true where the server (MariaDB) can be told not to wait for locks.
	direct bool
	// settled says what it means that a settlement changed nothing.
	settled func(claim.Row, core.Grant) error
}

// conn is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// auto runs autocommit statements that pass over locked rows. Read-backs are
// plain consistent reads: no locks, no waits, always of the newest commit.
func (s *Store) auto() runner {
	return runner{conn: s.db, skip: " SKIP LOCKED", direct: s.mariadb.Load(), settled: claim.Row.Settled}
}

// within runs statements in the caller's transaction. There they wait for a
// locked row (for a heartbeat's few milliseconds, mostly), and a read-back must
// lock what it reads, since a plain one would see the transaction's old
// snapshot.
func (s *Store) within(tx *sql.Tx) runner {
	return runner{conn: tx, read: " FOR UPDATE", settled: claim.Row.SettledTx}
}

// exec runs a statement and returns how many rows it changed. Since every
// statement here changes each row that it matches, clientFoundRows makes no
// difference.
func (r runner) exec(ctx context.Context, stmt *text) (int, error) {
	res, err := r.conn.ExecContext(ctx, stmt.String())
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// change runs the statement that build makes: where it may, the direct one, and the
// one that passes over locked rows if there are any.
func (r runner) change(ctx context.Context, build func(r runner) *text) (int, error) {
	n, err := r.exec(ctx, build(r))
	if !r.direct || number(err) != errLockTimeout {
		return n, err
	}
	r.direct = false
	return r.exec(ctx, build(r))
}

// rows runs a query and calls scan for each row.
func (r runner) rows(ctx context.Context, stmt *text, scan func(*sql.Rows) error) error {
	rows, err := r.conn.QueryContext(ctx, stmt.String())
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // its error is in rows.Err, or one came before
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ready finds out once whether the server can do what the statements need, so
// that the error says so instead of a late surprise.
func (s *Store) ready(ctx context.Context) error {
	if s.checked.Load() {
		return nil
	}
	var version, autocommit, readOnly, innodb string
	err := s.db.QueryRowContext(ctx, sessionQuery).Scan(&version, &autocommit, &readOnly, &innodb)
	switch {
	case err != nil:
		return err
	case !supported(version):
		return fmt.Errorf("server version %s; want MySQL 8.0 or MariaDB 10.6 or newer", version)
	case off(autocommit):
		return fmt.Errorf("autocommit is off on this pool's connections, so nothing would be committed; remove it from the DSN or init_connect")
	case !off(readOnly), !off(innodb):
		return fmt.Errorf("the server is read-only (a replica?); mysqlclaim needs the primary")
	}
	s.mariadb.Store(isMariaDB(version))
	s.checked.Store(true)
	return nil
}

// @@read_only is a word in newer MariaDB, a number elsewhere.
const sessionQuery = "SELECT VERSION(), CAST(@@autocommit AS CHAR), CAST(@@read_only AS CHAR), CAST(@@innodb_read_only AS CHAR)"

func off(v string) bool { return v == "0" || strings.EqualFold(v, "OFF") }

func isMariaDB(version string) bool { return strings.Contains(strings.ToLower(version), "mariadb") }

// supported tells whether a version has FOR UPDATE SKIP LOCKED.
func supported(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	if isMariaDB(version) {
		return major > 10 || major == 10 && minor >= 6
	}
	return major >= 8
}

// item is an element of a caller's batch with its place in it.
type item[T any] struct {
	at int
	v  T
}

// sorted returns the batch ordered by id: all statements then lock in the same
// order, the primary key's.
func sorted[T any](batch []T, id func(T) core.ID) []item[T] {
	items := make([]item[T], len(batch))
	for i, v := range batch {
		items[i] = item[T]{i, v}
	}
	slices.SortFunc(items, func(a, b item[T]) int { return strings.Compare(string(id(a.v)), string(id(b.v))) })
	return items
}

// chunks splits sorted items into what one statement takes.
func chunks[T any](items []item[T], size func(item[T]) int) iter.Seq2[int, []item[T]] {
	return claim.Chunks(items, chunkRows, chunkBytes, size)
}

// failures collects the items that failed and returns them in the batch's order.
type failures []core.ItemError

func (f *failures) add(at int, id core.ID, err error) {
	if err != nil {
		*f = append(*f, core.ItemError{Index: at, ID: id, Err: err})
	}
}

func (f failures) err() error {
	slices.SortFunc(f, func(a, b core.ItemError) int { return a.Index - b.Index })
	return core.NewBatchError(f)
}

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
	"time"

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
	known          atomic.Pointer[dialect] // the server was found fit
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
	// Session variables that a change and a query set for themselves.
	changing, reading []string
	dialect           dialect
	by                time.Time // no change takes effect after it; zero: there is no such moment
	effect            *effect
}

// conn is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// auto runs autocommit statements that pass over locked rows, for one call. Read-backs
// are plain consistent reads: no locks, no waits, always of the newest commit.
func (s *Store) auto(by time.Time) runner {
	d := s.dialect()
	return runner{
		conn: pool{s.db}, skip: " SKIP LOCKED", direct: d.mariadb, settled: claim.Row.Settled,
		changing: []string{shortWait, anyUpdate}, reading: []string{shortWait, allRows},
		dialect: d, by: by, effect: new(effect),
	}
}

// within runs statements in the caller's transaction. There they wait for a
// locked row (for a heartbeat's few milliseconds, mostly), and a read-back must
// lock what it reads, since a plain one would see the transaction's old
// snapshot. How long they may wait is the user's session's to say.
func (s *Store) within(tx *sql.Tx) runner {
	d := s.dialect()
	r := runner{
		conn: tx, read: " FOR UPDATE", settled: claim.Row.SettledTx,
		changing: []string{anyUpdate}, reading: []string{allRows}, dialect: d, effect: new(effect),
	}
	if d.snapshot {
		r.changing, r.reading = append(r.changing, newestRows), append(r.reading, newestRows)
	}
	return r
}

// exec runs a statement and returns how many rows it changed. Since every
// statement here changes each row that it matches, clientFoundRows makes no
// difference.
func (r runner) exec(ctx context.Context, stmt *text) (int, error) {
	variables := r.changing
	if stmt.direct {
		variables = append(slices.Clip(variables), noWait)
	}
	res, err := r.conn.ExecContext(ctx, r.dialect.set(stmt.String(), variables...))
	n := int64(0)
	if err == nil {
		n, err = res.RowsAffected()
	}
	r.effect.of(n, err)
	return int(n), err
}

// change runs the statement that build makes: where it may, the direct one, and the
// one that passes over locked rows if there are any.
func (r runner) change(ctx context.Context, build func(r runner) *text) (int, error) {
	stmt := build(r)
	n, err := r.exec(ctx, stmt)
	if !stmt.direct || number(err) != errLockTimeout {
		return n, err
	}
	r.direct = false
	return r.exec(ctx, build(r))
}

// rows runs a query and calls scan for each row.
func (r runner) rows(ctx context.Context, stmt *text, scan func(*sql.Rows) error) error {
	return each(ctx, r.conn, r.dialect.set(stmt.String(), r.reading...), nil, scan)
}

// ready finds out once whether the server and the session can do what the statements
// need. A call that fails here has sent nothing else.
func (s *Store) ready(ctx context.Context, conn conn) error {
	if s.known.Load() != nil {
		return nil
	}
	d, err := examine(ctx, conn)
	if err != nil {
		return fmt.Errorf("%w: %w", core.ErrNotDone, err)
	}
	s.known.Store(&d)
	return nil
}

// dialect is what ready found out.
func (s *Store) dialect() dialect {
	if d := s.known.Load(); d != nil {
		return *d
	}
	return dialect{}
}

// item is an element of a caller's batch with its place in it.
type item[T any] struct {
	at int
	v  T
}

// sorted returns the batch ordered by id: all statements then lock in the same
// order, the primary key's. Of several with one id the first one stays the first.
func sorted[T any](batch []T, id func(T) core.ID) []item[T] {
	items := make([]item[T], len(batch))
	for i, v := range batch {
		items[i] = item[T]{i, v}
	}
	slices.SortStableFunc(items, func(a, b item[T]) int { return strings.Compare(string(id(a.v)), string(id(b.v))) })
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

package pgclaim

import (
	"cmp"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Options of a Store. The zero value works.
type Options struct {
	// Table is the managed table's name, "name" or "schema.name"; default
	// claim.DefaultTable. At most 54 bytes each. Without a schema the
	// connection's search_path decides.
	Table string
	// Queue separates the tasks of several applications in one table; default
	// claim.DefaultQueue.
	Queue string
	// DeleteFinished deletes done and cancelled rows at once. Otherwise they stay
	// until Purge, so that a repeated Insert or Settle recognises itself. Dead
	// rows are always kept.
	DeleteFinished bool
}

// Store is a core.Store on one queue of a managed table. It is safe for
// concurrent use. It never closes the pool that it was given.
type Store struct {
	table, queue   string
	deleteFinished bool
	sql            statements
	handle
}

var (
	_ core.Store      = (*Store)(nil)
	_ core.TimeSource = (*Store)(nil)
	_ core.Purger     = (*Store)(nil)
	_ core.Prober     = (*Store)(nil)
)

// New returns a Store on a pool of native pgx connections. It doesn't connect.
// It fails with core.ErrInvalid when a name in o breaks a rule or pool is nil.
func New(pool *pgxpool.Pool, o Options) (*Store, error) {
	if pool == nil {
		return nil, fmt.Errorf("pgclaim: %w: the pool is nil", core.ErrInvalid)
	}
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	s.handle = onPool(pool)
	return s, nil
}

// NewSQL returns a Store on a *sql.DB whose driver is pgx/stdlib. It doesn't
// connect: what a wrapper around that driver hides from pgx is said by the first call,
// with core.ErrInvalid. It fails like New.
func NewSQL(db *sql.DB, o Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("pgclaim: %w: the database is nil", core.ErrInvalid)
	}
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	s.handle = onSQL(db)
	return s, nil
}

func newStore(o Options) (*Store, error) {
	table, queue := cmp.Or(o.Table, claim.DefaultTable), cmp.Or(o.Queue, claim.DefaultQueue)
	if err := claim.CheckTable(table, len(longestSuffix)); err != nil {
		return nil, fmt.Errorf("pgclaim: %w", err)
	}
	if err := claim.CheckQueue(queue); err != nil {
		return nil, fmt.Errorf("pgclaim: %w", err)
	}
	return &Store{
		table: table, queue: queue, deleteFinished: o.DeleteFinished,
		sql: newStatements(claim.QuoteTable(table, '"')),
	}, nil
}

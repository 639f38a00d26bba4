package parts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// connectTimeout is how long to wait for a server's first answer.
const connectTimeout = 5 * time.Second

// Store is what all three SQL stores can do.
type Store interface {
	core.Store
	// Migrate creates or upgrades the tasks' table.
	Migrate(ctx context.Context) error
	// InsertTx stores tasks in a transaction of the caller's.
	InsertTx(ctx context.Context, tx *sql.Tx, call core.Call, tasks []core.Task) error
	// SettleTx ends grants in a transaction of the caller's.
	SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error
}

// Parts are an index and a store, opened.
type Parts struct {
	Index core.TimeIndex
	Store Store
	// DB is the database that the store is in, for statements of the example's
	// own.
	DB *sql.DB

	choice Choice
	table  func(ctx context.Context, def claim.Table) (Table, error)
	quote  byte // of table names
	dollar bool // placeholders are $1, $2 …
	close  []func() error
}

// Open opens the parts and makes sure that their servers answer. The error names
// the address of one that doesn't.
func Open(ctx context.Context, c Choice) (*Parts, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	p := &Parts{choice: c}
	openStore := p.openSQLite
	switch scheme, _, _ := strings.Cut(c.Store, ":"); scheme {
	case "mysql":
		openStore = p.openMySQL
	case "postgres", "postgresql":
		openStore = p.openPostgres
	}
	if err := errors.Join(openStore(ctx), p.openIndex(ctx)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// noAnswer is the error of a server that can't be reached: its address and the
// driver's reason, which never has the password.
func noAnswer(kind, address string, err error) error {
	return fmt.Errorf("no answer from %s at %s: %w", kind, address, err)
}

// Close closes what Open opened, the last first.
func (p *Parts) Close() error {
	var errs []error
	for _, f := range slices.Backward(p.close) {
		errs = append(errs, f())
	}
	p.close = nil
	return errors.Join(errs...)
}

// SQL turns the ? placeholders of a statement into those of the database.
func (p *Parts) SQL(query string) string {
	if !p.dollar {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// InTx runs f in a transaction and commits it, or rolls it back when f fails.
func (p *Parts) InTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := p.DB.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // SQLite knows one level only, and ignores this
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // the cause is err
		return err
	}
	return tx.Commit()
}

// Counts reads from the tasks' table how many tasks of the queue are in each
// state. This is SQL of the example's own, beside the store: what it says doesn't
// depend on what the scheduler believes.
func (p *Parts) Counts(ctx context.Context) (map[claim.Status]int, error) {
	query := p.SQL("SELECT status, COUNT(*) FROM " + p.tasks() + " WHERE queue = ? GROUP BY status")
	rows, err := p.DB.QueryContext(ctx, query, p.choice.Queue)
	if err != nil {
		return nil, fmt.Errorf("count the tasks: %w", err)
	}
	defer func() { _ = rows.Close() }()
	counts := map[claim.Status]int{}
	for rows.Next() {
		var status claim.Status
		var n int
		if err := rows.Scan(&status, &n); err != nil {
			return nil, fmt.Errorf("count the tasks: %w", err)
		}
		counts[status] = n
	}
	return counts, rows.Err()
}

// RunningOf reads from the tasks' table how many tasks a worker holds. Holders
// start with the worker's Options.Name.
func (p *Parts) RunningOf(ctx context.Context, worker string) (n int, err error) {
	query := p.SQL("SELECT COUNT(*) FROM " + p.tasks() + " WHERE queue = ? AND status = 'running' AND holder LIKE ?")
	if err := p.DB.QueryRowContext(ctx, query, p.choice.Queue, worker+".%").Scan(&n); err != nil {
		return 0, fmt.Errorf("count the tasks of %s: %w", worker, err)
	}
	return n, nil
}

// Clean removes the queue's tasks and index entries, so that a run leaves nothing
// but an empty table behind.
func (p *Parts) Clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	if _, err := p.DB.ExecContext(ctx, p.SQL("DELETE FROM "+p.tasks()+" WHERE queue = ?"), p.choice.Queue); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return p.ClearIndex(ctx)
}

// ClearIndex removes the queue's index entries.
func (p *Parts) ClearIndex(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for {
		left, err := p.Index.Due(ctx, far, 1000)
		if err == nil && len(left) > 0 {
			err = p.Index.Remove(ctx, left)
		}
		if err != nil {
			return fmt.Errorf("clear the index: %w", err)
		}
		if len(left) == 0 {
			return nil
		}
	}
}

func (p *Parts) tasks() string { return claim.QuoteTable(p.choice.Table, p.quote) }

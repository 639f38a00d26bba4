package sqliteclaim

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// onSQL is a querier through database/sql, on a *sql.DB, *sql.Conn or *sql.Tx. The
// statements that change rows are prepared once, until close: they run once an item.
type onSQL struct {
	q          sqlQuerier
	statements map[string]*sql.Stmt
}

type sqlQuerier interface {
	reader
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func newOnSQL(q sqlQuerier) *onSQL { return &onSQL{q: q, statements: map[string]*sql.Stmt{}} }

func (o *onSQL) exec(ctx context.Context, text string, args ...any) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	always := context.WithoutCancel(ctx)
	statement, ok := o.statements[text]
	if !ok {
		var err error
		if statement, err = o.q.PrepareContext(always, text); err != nil {
			return 0, err
		}
		o.statements[text] = statement
	}
	result, err := statement.ExecContext(always, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (o *onSQL) query(ctx context.Context, text string, row func(scanner) error, args ...any) error {
	return each(ctx, o.q, text, row, args...)
}

func (o *onSQL) close() {
	for _, statement := range o.statements {
		_ = statement.Close()
	}
}

// pooledConn is a connection of the user's own pool, for one transaction.
type pooledConn struct {
	*onSQL
	conn *sql.Conn
}

func pooledSession(ctx context.Context, db *sql.DB) (session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &pooledConn{newOnSQL(conn), conn}, nil
}

func (p *pooledConn) begin(ctx context.Context) error {
	_, err := p.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// commit waits for no lock in WAL mode; when ctx is done in the middle of it, its
// outcome should be known still.
func (p *pooledConn) commit(ctx context.Context) error {
	_, err := p.conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
	return err
}

// rollback marks a connection that it can't bring into order as bad, so that the pool
// drops it.
func (p *pooledConn) rollback(ctx context.Context) {
	p.onSQL.close()
	clear(p.statements)
	always := context.WithoutCancel(ctx)
	if !rolledBack(func(text string) error {
		_, err := p.conn.ExecContext(always, text)
		return err
	}) {
		_ = p.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// release gives the connection back to the pool.
func (p *pooledConn) release() (kept bool) {
	p.onSQL.close()
	_ = p.conn.Close()
	return false
}

func (p *pooledConn) close() error { return nil }

package sqlmocked

import (
	"context"
	"database/sql/driver"
	"errors"
)

// connector opens connections that all lead to one of sqlmock's.
type connector struct {
	p     *play
	inner driver.Conn
	drv   driver.Driver
}

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	return &conn{c.p, c.inner.(mockConn)}, nil
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c.drv }

// mockConn is what sqlmock's connection can do.
type mockConn interface {
	driver.QueryerContext
	driver.ExecerContext
	driver.ConnBeginTx
}

// conn stands between database/sql and sqlmock, so that a call which isn't in
// the script is known also when the store passes over its error.
type conn struct {
	p    *play
	mock mockConn
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := c.mock.QueryContext(ctx, query, args)
	c.p.note(err)
	if err != nil {
		return nil, err
	}
	return rows{r, c.p}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := c.mock.ExecContext(ctx, query, args)
	c.p.note(err)
	return r, err
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := c.mock.BeginTx(ctx, opts)
	c.p.note(err)
	if err != nil {
		return nil, err
	}
	return tx{inner, c.p}, nil
}

// Begin implements driver.Conn; database/sql calls BeginTx.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	err := errors.New("prepared statements can't be scripted: " + query)
	c.p.note(err)
	return nil, err
}

// Close implements driver.Conn.
func (c *conn) Close() error { return nil }

// CheckNamedValue implements driver.NamedValueChecker: arguments are compared as
// the store gave them.
func (c *conn) CheckNamedValue(*driver.NamedValue) error { return nil }

type tx struct {
	driver.Tx
	p *play
}

// Commit implements driver.Tx.
func (t tx) Commit() error {
	err := t.Tx.Commit()
	t.p.note(err)
	return err
}

// Rollback implements driver.Tx.
func (t tx) Rollback() error {
	err := t.Tx.Rollback()
	t.p.note(err)
	return err
}

// rows fills in the values that were made up.
type rows struct {
	driver.Rows
	p *play
}

// Next implements driver.Rows.
func (r rows) Next(dest []driver.Value) error {
	if err := r.Rows.Next(dest); err != nil {
		return err
	}
	for i, v := range dest {
		if s, ok := v.(string); ok {
			dest[i] = r.p.filled(s)
		}
	}
	return nil
}

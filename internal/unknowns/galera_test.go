package unknowns

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

// galera wraps a driver so that the first few UPDATEs change their rows and are
// then rolled back by a COMMIT that fails, as a cluster's certification does it.
type galera struct {
	inner driver.Connector

	mu    sync.Mutex
	fails int
	rows  []int // changed by each that was rolled back
}

func (g *galera) around(t *testing.T, dsn string) driver.Connector {
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	inner, err := mysql.NewConnector(config)
	require.NoError(t, err)
	g.inner = inner
	return g
}

func (g *galera) left() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fails
}

func (g *galera) changed() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.rows)
}

// certifies says whether a statement is one that fails, and counts it.
func (g *galera) certifies(query string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails == 0 || !strings.Contains(query, "UPDATE ") {
		return true
	}
	g.fails--
	return false
}

// Connect implements driver.Connector.
func (g *galera) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := g.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &galeraConn{Conn: c, galera: g}, nil
}

// Driver implements driver.Connector.
func (g *galera) Driver() driver.Driver { return g.inner.Driver() }

type galeraConn struct {
	driver.Conn
	galera *galera
}

// QueryContext implements driver.QueryerContext.
func (c *galeraConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// ExecContext implements driver.ExecerContext.
func (c *galeraConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	exec := c.Conn.(driver.ExecerContext).ExecContext
	if c.galera.certifies(query) {
		return exec(ctx, query, args)
	}
	if _, err := exec(ctx, "START TRANSACTION", nil); err != nil {
		return nil, err
	}
	result, err := exec(ctx, query, args)
	if err != nil {
		return nil, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return nil, err
	}
	c.galera.mu.Lock()
	c.galera.rows = append(c.galera.rows, int(n))
	c.galera.mu.Unlock()
	if _, err := exec(ctx, "ROLLBACK", nil); err != nil {
		return nil, err
	}
	return nil, &mysql.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock; try restarting transaction"}
}

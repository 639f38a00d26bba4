package mysqlclaim

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// pool is a *sql.DB whose changes tell whether they were sent, and that parts with
// connections to a server that has become read-only. After a failover those that stand
// lead to what is a replica now, and new ones to the new primary; nothing else would
// ever drop them.
type pool struct{ *sql.DB }

// unsent is the error of a statement that was not sent, as there was no connection.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// maxBad is how often a statement is tried on a connection that turns out to be dead
// before anything was sent, as database/sql does.
const maxBad = 3

func (p pool) ExecContext(ctx context.Context, query string, args ...any) (res sql.Result, err error) {
	for range maxBad {
		c, none := p.Conn(ctx)
		if none != nil {
			if s := p.Stats(); ctx.Err() != nil && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
				none = fmt.Errorf("%w (all %d are in use): %w", core.ErrNoConnection, s.MaxOpenConnections, none)
			}
			return nil, unsent{fmt.Errorf("no connection was to be had: %w", none)}
		}
		res, err = c.ExecContext(ctx, query, args...)
		if readOnly(err) {
			p.part(ctx, c)
			return nil, err
		}
		_ = c.Close() // back to the pool
		if !errors.Is(err, driver.ErrBadConn) {
			return res, err
		}
	}
	return nil, unsent{err}
}

// part drops a connection that was found to be to the wrong server, and those that wait
// in the pool: they were made before it was found out. It waits for none that others have
// taken meanwhile, and for no new one.
func (p pool) part(ctx context.Context, wrong *sql.Conn) {
	idle := min(p.Stats().Idle, mostDropped)
	drop(wrong)
	ctx, cancel := context.WithTimeout(ctx, longestParting)
	defer cancel()
	for range idle {
		if c, err := p.Conn(ctx); err == nil {
			drop(c)
		}
	}
}

// How many idle connections one error drops at most, and for how long.
const (
	mostDropped    = 100
	longestParting = 100 * time.Millisecond
)

// drop closes a connection for good.
func drop(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close() // it is closed by now; this gives back what is the pool's
}

// effect tells whether something of a call may have taken effect.
type effect struct{ any atomic.Bool }

// of notes what came of a statement.
func (e *effect) of(changed int64, err error) {
	if changed > 0 || err != nil && !undone(err) && number(err) != errDuplicate {
		e.any.Store(true)
	}
}

// prove marks the error of a call nothing of which took effect, for certain.
func (e *effect) prove(err error) error {
	if err == nil || e.any.Load() || !undone(err) {
		return err
	}
	return fmt.Errorf("%w: %w", core.ErrNotDone, err)
}

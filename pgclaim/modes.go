package pgclaim

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/dueclaim/dueclaim/core"
)

// modes decides in which query exec mode the store's statements run: in the
// pool's own, except that CacheStatement becomes CacheDescribe (same wire format,
// one round trip too, but planned for each call), and that a mode which can't be
// known becomes Exec (planned for each call too; values travel as text). The first
// arguments of a pgx query, through database/sql as well, may name its mode.
type modes struct {
	choice atomic.Int32
}

const (
	unknown int32 = iota // not looked yet
	keep
	describe
	exec
)

func modesOf(config *pgx.ConnConfig) *modes {
	m := new(modes)
	m.set(config)
	return m
}

func (m *modes) set(config *pgx.ConnConfig) {
	switch {
	case config.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement:
		m.choice.Store(keep)
	case config.DescriptionCacheCapacity > 0:
		m.choice.Store(describe)
	default:
		m.choice.Store(exec)
	}
}

// learn looks at a connection of db, once.
func (m *modes) learn(ctx context.Context, db *sql.DB) error {
	if m.choice.Load() != unknown {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives it back to the pool
	err = conn.Raw(func(driverConn any) error {
		if err := checkWrapper(driverConn); err != nil {
			return err
		}
		// Wrappers (of tracers, for one) show what they wrap by this method.
		for {
			w, ok := driverConn.(interface{ Raw() sqldriver.Conn })
			if !ok {
				break
			}
			driverConn = w.Raw()
		}
		c, ok := driverConn.(*stdlib.Conn)
		if !ok {
			m.choice.Store(exec)
			return nil
		}
		if err := checkEncoding(c.Conn()); err != nil {
			return err
		}
		m.set(c.Conn().Config())
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at a connection: %w", err)
	}
	return nil
}

// checkWrapper refuses a connection that lets no lists through. database/sql itself
// knows none, nor the mode that comes before them: it would turn that into a number, and
// the server would be given one argument too many.
func checkWrapper(driverConn any) error {
	_, checks := driverConn.(sqldriver.NamedValueChecker)
	_, queries := driverConn.(sqldriver.QueryerContext)
	if checks && queries {
		return nil
	}
	return fmt.Errorf("%w: the driver's connection is a %T, which has no CheckNamedValue or no QueryContext, so that lists don't get through to pgx: open the database with pgx/stdlib itself, or with a wrapper that passes on driver.NamedValueChecker and driver.QueryerContext", core.ErrInvalid, driverConn)
}

// override is what to put before a statement's arguments.
func (m *modes) override() []any {
	switch m.choice.Load() {
	case keep:
		return nil
	case describe:
		return []any{pgx.QueryExecModeCacheDescribe}
	default:
		return []any{pgx.QueryExecModeExec}
	}
}

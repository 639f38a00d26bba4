package pgclaim

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// modes decides in which query exec mode the store's statements run: in the
// pool's own, except that CacheStatement becomes CacheDescribe (same wire format,
// one round trip too, but planned for each call). The first arguments of a pgx
// query, through database/sql as well, may name its mode.
type modes struct {
	// known is 0 until the pool's mode is known, else keep or describe.
	known atomic.Int32
}

const (
	keep int32 = iota + 1
	describe
)

func modesOf(config *pgx.ConnConfig) *modes {
	m := new(modes)
	m.set(config)
	return m
}

func (m *modes) set(config *pgx.ConnConfig) {
	choice := keep
	if config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement && config.DescriptionCacheCapacity > 0 {
		choice = describe
	}
	m.known.Store(choice)
}

// learn looks at a connection of db, once. Where the driver is wrapped, the
// pool's own mode stays.
func (m *modes) learn(ctx context.Context, db *sql.DB) error {
	if m.known.Load() != 0 {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives it back to the pool
	err = conn.Raw(func(driverConn any) error {
		if c, ok := driverConn.(*stdlib.Conn); ok {
			m.set(c.Conn().Config())
		} else {
			m.known.Store(keep)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at a connection: %w", err)
	}
	return nil
}

// override is what to put before a statement's arguments.
func (m *modes) override() []any {
	if m.known.Load() == describe {
		return []any{pgx.QueryExecModeCacheDescribe}
	}
	return nil
}

package pgclaim

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dueclaim/dueclaim/core"
)

// handle is the user's pool, of either kind, with the mode in which our
// statements run on it.
type handle struct {
	modes *modes
	pool  *pgxpool.Pool // either this
	db    *sql.DB       // or this
}

func onPool(pool *pgxpool.Pool) handle {
	return handle{pool: pool, modes: modesOf(pool.Config().ConnConfig)}
}

func onSQL(db *sql.DB) handle { return handle{db: db, modes: new(modes)} }

// runner gives the way to run the statements of one call, each a transaction of its
// own.
func (h *handle) runner(ctx context.Context) (runner, error) {
	if err := ctx.Err(); err != nil {
		return nil, undone{err}
	}
	if h.db != nil {
		if err := h.modes.learn(ctx, h.db); err != nil {
			return nil, undone{err}
		}
	}
	return &callRunner{h: h}, nil
}

// onConn runs do on a connection of the pool. One that leads to a server which takes no
// writes is not given back: the pool would hand it out again for as long as it stands,
// while a new one may reach the primary.
func (h *handle) onConn(ctx context.Context, do func(runner) error) error {
	if h.pool != nil {
		return h.onPgx(ctx, func(conn *pgxpool.Conn) error { return do(pgxRunner{conn, h.modes.override()}) })
	}
	var err error
	for range sends {
		err = h.onDB(ctx, func(conn *sql.Conn) error { return do(sqlRunner{conn, h.modes.override()}) })
		if !errors.Is(err, sqldriver.ErrBadConn) {
			break
		}
	}
	return err
}

// sends is how often a statement goes to a connection that turns out to be dead before
// anything was sent, as a *sql.DB does it by itself.
const sends = 3

func (h *handle) onPgx(ctx context.Context, do func(*pgxpool.Conn) error) error {
	conn, err := h.pool.Acquire(ctx)
	if err != nil {
		stat := h.pool.Stat()
		return undone{noConnection(ctx, err, int(stat.AcquiredConns()), int(stat.MaxConns()))}
	}
	defer conn.Release()
	if err := checkEncoding(conn.Conn()); err != nil {
		return undone{err}
	}
	err = do(conn)
	if isReadOnly(err) {
		_ = conn.Conn().Close(context.WithoutCancel(ctx)) // Release throws a closed one away
	}
	return err
}

func (h *handle) onDB(ctx context.Context, do func(*sql.Conn) error) error {
	conn, err := h.db.Conn(ctx)
	if err != nil {
		stats := h.db.Stats()
		return undone{noConnection(ctx, err, stats.InUse, stats.MaxOpenConnections)}
	}
	defer func() { _ = conn.Close() }() // gives it back to the pool
	err = do(conn)
	if isReadOnly(err) {
		_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // the pool throws it away
	}
	return err
}

// noConnection says of a wait that ended with ctx whether it was for a connection that
// others of this process had: the server is not to blame then.
func noConnection(ctx context.Context, err error, inUse, most int) error {
	if ctx.Err() == nil || most == 0 || inUse < most {
		return err
	}
	return fmt.Errorf("%w (all %d are in use): %w", core.ErrNoConnection, most, err)
}

// checkEncoding refuses a session in which the server takes what we send for another
// encoding: ids would not be the ones that other processes have.
func checkEncoding(conn *pgx.Conn) error {
	if e := conn.PgConn().ParameterStatus("client_encoding"); e != "UTF8" && e != "" {
		return fmt.Errorf("%w: the session's client_encoding is %s; want UTF8, which is what is sent (client_encoding=UTF8 in the DSN, or ALTER ROLE … RESET client_encoding)", core.ErrInvalid, e)
	}
	return nil
}

// inTx runs do in a READ COMMITTED transaction of its own.
func (h *handle) inTx(ctx context.Context, do func(context.Context, runner) error) error {
	if h.pool != nil {
		return h.onPgx(ctx, func(conn *pgxpool.Conn) error {
			return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				return do(ctx, pgxRunner{tx, h.modes.override()})
			})
		})
	}
	return h.onDB(ctx, func(conn *sql.Conn) error {
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // also after a panic; after Commit it does nothing
		if err := do(ctx, sqlRunner{tx, h.modes.override()}); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// now reads the server's clock.
func (h *handle) now(ctx context.Context) (time.Time, error) {
	r, err := h.runner(ctx)
	if err != nil {
		return time.Time{}, err
	}
	var micros int64
	if err := r.run(ctx, nowSQL, nil, func(scan scanner) error { return scan(&micros) }); err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(micros).UTC(), nil
}

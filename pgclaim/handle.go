package pgclaim

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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

// runner gives the way to run single statements, each a transaction of its own.
func (h *handle) runner(ctx context.Context) (runner, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if h.pool != nil {
		return pgxRunner{h.pool, h.modes.override()}, nil
	}
	if err := h.modes.learn(ctx, h.db); err != nil {
		return nil, err
	}
	return sqlRunner{h.db, h.modes.override()}, nil
}

// inTx runs do in a READ COMMITTED transaction of its own.
func (h *handle) inTx(ctx context.Context, do func(context.Context, runner) error) error {
	if h.pool != nil {
		return pgx.BeginTxFunc(ctx, h.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return do(ctx, pgxRunner{tx, h.modes.override()})
		})
	}
	tx, err := h.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // also after a panic; after Commit it does nothing
	if err := do(ctx, sqlRunner{tx, h.modes.override()}); err != nil {
		return err
	}
	return tx.Commit()
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

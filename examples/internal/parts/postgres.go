package parts

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/pgclaim"
)

// openPostgres opens a pool of pgx, which the store uses natively. The examples'
// own statements go through database/sql, to be the same on every database, over
// the same pool.
func (p *Parts) openPostgres(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(p.choice.Store)
	if err != nil {
		return errors.New("store postgres://…: the driver doesn't know its options")
	}
	config.MaxConns = 24
	config.ConnConfig.RuntimeParams["timezone"] = "UTC" // what now() writes into a timestamp
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	p.close = append(p.close, func() error { pool.Close(); return nil }, db.Close)
	if err := pool.Ping(ctx); err != nil {
		address := net.JoinHostPort(config.ConnConfig.Host, strconv.Itoa(int(config.ConnConfig.Port)))
		return noAnswer("postgres", address, err)
	}
	store, err := pgclaim.New(pool, pgclaim.Options{Table: p.choice.Table, Queue: p.choice.Queue})
	if err != nil {
		return err
	}
	p.Store, p.DB, p.quote, p.dollar = postgresStore{store}, db, '"', true
	p.table = func(_ context.Context, def claim.Table) (Table, error) {
		t, err := pgclaim.NewSQLTable(db, def)
		return postgresTable{t}, err
	}
	return nil
}

// postgresStore is the store with the transactions of database/sql.
type postgresStore struct{ *pgclaim.Store }

func (s postgresStore) InsertTx(ctx context.Context, tx *sql.Tx, call core.Call, tasks []core.Task) error {
	return s.InsertSQLTx(ctx, tx, call, tasks)
}

func (s postgresStore) SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	return s.SettleSQLTx(ctx, tx, now, settlements)
}

// postgresTable is the table with the transactions of database/sql.
type postgresTable struct{ *pgclaim.Table }

func (t postgresTable) SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
	return t.SettleSQLTx(ctx, tx, now, settlements)
}

func (t postgresTable) Transition(ctx context.Context, job *core.Job, f func(tx *sql.Tx) error) error {
	return t.TransitionSQL(ctx, job, f)
}

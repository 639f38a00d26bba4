package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/examples/internal/parts"
)

// The shop's own tables, in words that SQLite, MySQL and Postgres all understand.
// Times are milliseconds of real time by the store's clock.
//
// shop_stock is a ledger, as in a bookkeeper's books: what is there of a product is
// the sum of what was moved. So no two transactions change the same row, and
// nothing keeps goods from coming back twice: it would show in the end. Neither is
// a second cancellation of an order kept out of shop_cancellations.
var createTables = []string{
	`CREATE TABLE shop_orders (
		id VARCHAR(40) NOT NULL PRIMARY KEY,
		status VARCHAR(10) NOT NULL,
		due_at BIGINT NOT NULL)`,
	`CREATE TABLE shop_items (
		order_id VARCHAR(40) NOT NULL,
		sku VARCHAR(40) NOT NULL,
		quantity INT NOT NULL,
		PRIMARY KEY (order_id, sku))`,
	`CREATE TABLE shop_stock (
		sku VARCHAR(40) NOT NULL,
		moved INT NOT NULL)`,
	`CREATE TABLE shop_cancellations (
		order_id VARCHAR(40) NOT NULL,
		worker VARCHAR(40) NOT NULL,
		taken_over INT NOT NULL,
		at BIGINT NOT NULL,
		late_us BIGINT NOT NULL)`,
}

// database is the shop's tables and its tasks.
type database struct {
	*parts.Parts
	prefix string // of this run's tables
}

func openDatabase(ctx context.Context, choice parts.Choice) (*database, error) {
	p, err := parts.Open(ctx, choice)
	if err != nil {
		return nil, err
	}
	// Runs don't meet, even in one database.
	return &database{Parts: p, prefix: "shop_" + strings.ReplaceAll(choice.Queue, "-", "_") + "_"}, nil
}

// query makes a statement fit this database and this run's tables.
func (d *database) query(text string) string {
	return d.SQL(strings.ReplaceAll(text, "shop_", d.prefix))
}

// create makes the tables of the tasks and of the shop.
func (d *database) create(ctx context.Context) error {
	if err := d.Store.Migrate(ctx); err != nil {
		return err
	}
	for _, text := range createTables {
		if _, err := d.DB.ExecContext(ctx, d.query(text)); err != nil {
			return fmt.Errorf("create the shop's tables: %w", err)
		}
	}
	return nil
}

// drop removes all that create and the run have made, but for the empty table of
// the tasks.
func (d *database) drop(ctx context.Context) error {
	err := d.Clean(ctx)
	for _, name := range []string{"shop_orders", "shop_items", "shop_stock", "shop_cancellations"} {
		_, dropErr := d.DB.ExecContext(ctx, d.query("DROP TABLE IF EXISTS "+name))
		err = errors.Join(err, dropErr)
	}
	return err
}

// change runs a statement in tx and returns how many rows it changed.
func (d *database) change(ctx context.Context, tx *sql.Tx, text string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, d.query(text), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/examples/internal/parts"
)

// ordersTables is the shop's table of orders, in each database's own words. None of
// them knows of dueclaim. "shop_" becomes the prefix of the run.
var ordersTables = map[string][]string{
	"mysql": {`CREATE TABLE shop_orders (
		order_id   VARCHAR(50) PRIMARY KEY,
		status     ENUM('pending','processing','cancelled','completed') NOT NULL DEFAULT 'pending',
		created_at DATETIME NOT NULL,
		updated_at DATETIME DEFAULT NULL)`},
	"postgres": {
		`CREATE TYPE shop_status AS ENUM ('pending','processing','cancelled','completed')`,
		`CREATE TABLE shop_orders (
		order_id   VARCHAR(50) PRIMARY KEY,
		status     shop_status NOT NULL DEFAULT 'pending',
		created_at TIMESTAMP(0) NOT NULL,
		updated_at TIMESTAMP(0) DEFAULT NULL)`},
	"sqlite": {`CREATE TABLE shop_orders (
		order_id   VARCHAR(50) PRIMARY KEY,
		status     VARCHAR(20) NOT NULL DEFAULT 'pending',
		created_at DATETIME NOT NULL,
		updated_at DATETIME DEFAULT NULL)`},
}

// otherTables are the shop's other tables, in words that all three understand.
//
// shop_stock is a ledger, as in a bookkeeper's books: what is there of a product is
// the sum of what was moved. So no two transactions change the same row, and
// nothing keeps goods from coming back twice: it would show in the end. Neither is
// a second cancellation of an order kept out of shop_cancellations, nor a second
// sale out of shop_sales. Times in them are by the store's clock.
var otherTables = []string{
	`CREATE TABLE shop_items (
		order_id VARCHAR(50) NOT NULL,
		sku VARCHAR(40) NOT NULL,
		quantity INT NOT NULL,
		PRIMARY KEY (order_id, sku))`,
	`CREATE TABLE shop_stock (
		sku VARCHAR(40) NOT NULL,
		moved INT NOT NULL)`,
	`CREATE TABLE shop_sales (
		sku VARCHAR(40) NOT NULL,
		quantity INT NOT NULL)`,
	`CREATE TABLE shop_cancellations (
		order_id VARCHAR(50) NOT NULL,
		worker VARCHAR(40) NOT NULL,
		crashes INT NOT NULL,
		at_ms BIGINT NOT NULL,
		late_us BIGINT NOT NULL)`,
}

// database is the shop's tables.
type database struct {
	*parts.Parts
	kind   string // "mysql", "postgres" or "sqlite"
	prefix string // of this run's tables
}

func openDatabase(ctx context.Context, choice parts.Choice) (*database, error) {
	p, err := parts.Open(ctx, choice)
	if err != nil {
		return nil, err
	}
	// Runs don't meet, even in one database.
	return &database{Parts: p, kind: choice.Database(), prefix: "shop_" + choice.Queue + "_"}, nil
}

// query makes a statement fit this database and this run's tables.
func (d *database) query(text string) string {
	return d.SQL(strings.ReplaceAll(text, "shop_", d.prefix))
}

// create makes the shop's tables.
func (d *database) create(ctx context.Context) error {
	for _, text := range append(ordersTables[d.kind], otherTables...) {
		if _, err := d.DB.ExecContext(ctx, d.query(text)); err != nil {
			return fmt.Errorf("create the shop's tables: %w", err)
		}
	}
	return nil
}

// drop removes all that create and the run have made.
func (d *database) drop(ctx context.Context) error {
	err := d.ClearIndex(ctx)
	texts := []string{
		"DROP TABLE IF EXISTS shop_orders", "DROP TABLE IF EXISTS shop_items", "DROP TABLE IF EXISTS shop_stock",
		"DROP TABLE IF EXISTS shop_sales", "DROP TABLE IF EXISTS shop_cancellations",
	}
	if d.kind == "postgres" {
		texts = append(texts, "DROP TYPE IF EXISTS shop_status")
	}
	for _, text := range texts {
		_, dropErr := d.DB.ExecContext(ctx, d.query(text))
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

// restock gives an order's goods back. It belongs into the transaction that ends
// the order.
func (d *database) restock(ctx context.Context, tx *sql.Tx, order string) error {
	_, err := d.change(ctx, tx, "INSERT INTO shop_stock (sku, moved) SELECT sku, quantity FROM shop_items WHERE order_id = ?", order)
	return err
}

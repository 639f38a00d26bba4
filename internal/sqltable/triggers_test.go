package sqltable

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatATriggerDoesToAColumnIsRead(t *testing.T) {
	for source, want := range map[string]Touch{
		// Postgres: the definition and the function's body.
		"CREATE TRIGGER touch BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION f()\nBEGIN NEW.updated_at = now(); RETURN NEW; END": Writes,
		"DECLARE x int;\nBEGIN\n  -- keep it\n  new.\"updated_at\" := clock_timestamp();\n  RETURN NEW;\nEND":                           Writes,
		"BEGIN IF row_to_json(NEW)::text <> 'x' THEN NEW.updated_at := now(); END IF; RETURN NEW; END":                                  Writes,
		"BEGIN SELECT now() INTO NEW.updated_at; RETURN NEW; END":                                                                       Writes,
		"BEGIN IF NEW.updated_at = OLD.updated_at THEN NEW.updated_at := now(); END IF; RETURN NEW; END":                                Names,
		"BEGIN IF NEW.updated_at = NEW.created_at THEN RAISE 'x'; END IF; RETURN NEW; END":                                              Names,
		"BEGIN NEW := NEW #= hstore('updated_at', now()::text); RETURN NEW; END":                                                        Names,
		"BEGIN INSERT INTO audit SELECT NEW.*; RETURN NEW; END":                                                                         Leaves,
		"BEGIN -- updated_at is the application's\n RETURN NEW; END":                                                                    Leaves,
		"BEGIN UPDATE public.orders SET status = status, updated_at = now() WHERE order_id = NEW.order_id; RETURN NULL; END":            Writes,
		"BEGIN UPDATE customers SET updated_at = now() WHERE id = NEW.customer; RETURN NULL; END":                                       Names,
		"BEGIN UPDATE orders SET seen = true WHERE updated_at = NEW.updated_at; RETURN NULL; END":                                       Names,
		"BEGIN UPDATE orders SET (seen, updated_at) = (true, now()) WHERE true; RETURN NULL; END":                                       Writes,
		"BEGIN NEW.last_updated_at = now(); RETURN NEW; END":                                                                            Leaves,
		"BEGIN NEW.updated_at_utc = now(); RETURN NEW; END":                                                                             Leaves,
		// MySQL: the statement.
		"SET NEW.updated_at = NOW()":                                                     Writes,
		"BEGIN SET NEW.n = 1, NEW . `updated_at` = NOW(3); END":                          Writes,
		"BEGIN IF NEW.status <> OLD.status THEN SET NEW.updated_at = NOW(); END IF; END": Writes,
		"IF NEW.updated_at <=> OLD.updated_at THEN SET NEW.updated_at = NOW(); END IF":   Names,
		"INSERT INTO log VALUES (NEW.updated_at)":                                        Names,
		"CALL touch(NEW.updated_at)":                                                     Names,
		// SQLite: the CREATE TRIGGER.
		"CREATE TRIGGER t AFTER UPDATE ON orders BEGIN UPDATE orders SET updated_at = datetime('now') WHERE order_id = new.order_id; END":                                 Writes,
		"CREATE TRIGGER t AFTER UPDATE ON \"orders\" BEGIN UPDATE OR IGNORE [orders] SET n = 1, [updated_at] = datetime('now') WHERE 1; END":                              Writes,
		"CREATE TRIGGER t AFTER UPDATE ON orders WHEN new.updated_at IS old.updated_at BEGIN UPDATE orders SET updated_at = datetime('now') WHERE rowid = new.rowid; END": Names,
		"CREATE TRIGGER t AFTER UPDATE ON orders BEGIN UPDATE totals SET n = n + 1, updated_at = 1; END":                                                                  Names,
	} {
		assert.Equal(t, want, TriggerTouch(source, "orders", "updated_at"), source)
	}
}

package sqliteclaim_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// native is how SQLite's own functions write a time.
var native = claim.TimeColumn{Kind: claim.DateTime, Digits: 3, Zone: time.UTC}

func instant(c claim.TimeColumn, value int64) any {
	if c.Integer() {
		return value
	}
	return c.Text(value)
}

// shopSQL makes a table for a configuration.
func shopSQL(c tabletest.Config, name string) string {
	times := "DATETIME"
	if c.Time().Integer() {
		times = "INTEGER"
	}
	def := c.Table(name, "s")
	due, _ := def.Due.Source()
	return strings.NewReplacer("$table", name, "$time", times, "$due", due.Name).Replace(`
		CREATE TABLE $table (
			order_id VARCHAR(255) PRIMARY KEY NOT NULL, shop TEXT NOT NULL, status TEXT NOT NULL,
			created_at $time, due_at $time, kind TEXT, payload BLOB,
			token INTEGER, holder TEXT, lease_until $time, attempts INTEGER, crashes INTEGER, last_error TEXT, updated_at $time, deleted_at TEXT);
		CREATE INDEX $table_sweep ON $table (shop, status, $due, order_id)`)
}

// tables are tables of one file, one for each case of the suite.
type tables struct {
	path   string
	config tabletest.Config
	users  bool // NewTable, not OpenTable
	run    func(statement string, args ...any)
	count  *atomic.Int64
	mu     sync.Mutex
	defs   map[core.Claimer]claim.Table
}

func (x *tables) handle(t *testing.T, def claim.Table) core.Claimer {
	var table *sqliteclaim.Table
	var err error
	if x.users {
		table, err = sqliteclaim.NewTable(usersDB(t, x.path), def)
	} else {
		table, err = sqliteclaim.OpenTable(t.Context(), x.path, def)
		t.Cleanup(func() { require.NoError(t, table.Close()) })
	}
	require.NoError(t, err)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.defs[table] = def
	return table
}

func (x *tables) def(c core.Claimer) claim.Table {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.defs[c]
}

func (x *tables) fresh(t *testing.T) core.Claimer {
	name := fmt.Sprint("orders", x.count.Add(1))
	x.run(shopSQL(x.config, name))
	t.Cleanup(func() { x.run("DELETE FROM " + name) })
	return x.handle(t, x.config.Table(name, "shop"))
}

func (x *tables) put(_ *testing.T, c core.Claimer, tasks []core.Task) {
	columns := tabletest.Columns()
	name := x.def(c).Name
	for len(tasks) > 0 {
		n := min(len(tasks), 1000)
		var values []any
		for _, task := range tasks[:n] {
			values = append(values, x.config.Row(task, "shop", instant)...)
		}
		row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
		x.run("INSERT INTO "+name+" ("+strings.Join(columns, ", ")+") VALUES "+row+strings.Repeat(", "+row, n-1), values...)
		tasks = tasks[n:]
	}
}

func TestTableKeepsTheContract(t *testing.T) {
	for _, config := range tabletest.Configs(native) {
		for _, users := range []bool{false, true} {
			// Whose the connections are has nothing to do with the mode.
			if users != (config.Name == "StatusUpdated") && os.Getenv("DUECLAIM_STRESS") == "" {
				continue
			}
			name := config.Name
			if users {
				name += ", database of the user's"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Attr("dueclaim.backend", config.Backend("sqlite"))
				path := file(t)
				other := usersDB(t, path)
				x := &tables{path: path, config: config, users: users, count: new(atomic.Int64), defs: map[core.Claimer]claim.Table{}}
				x.run = func(statement string, args ...any) {
					_, err := other.ExecContext(context.WithoutCancel(t.Context()), statement, args...)
					require.NoError(t, err, statement[:min(len(statement), 200)])
				}
				conformance.TestClaimer(t, conformance.Claimer{
					New:  x.fresh,
					Peer: func(t *testing.T, first core.Claimer) core.Claimer { return x.handle(t, x.def(first)) },
					Put:  x.put,
					Break: func(_ *testing.T, c core.Claimer) func() {
						name := x.def(c).Name
						x.run("ALTER TABLE " + name + " RENAME TO away_" + name)
						return func() { x.run("ALTER TABLE away_" + name + " RENAME TO " + name) }
					},
					Variant:  true,
					Provides: config.Provides,
					Weaker:   maps.Clone(config.Weaker),
				})
			})
		}
	}
}

func TestTableOfTheUsers(t *testing.T) {
	native := native
	native.Zone = berlin(t)
	for _, config := range tabletest.Configs(native) {
		t.Run(config.Name, func(t *testing.T) {
			t.Parallel()
			t.Attr("dueclaim.backend", config.Backend("sqlite"))
			path := file(t)
			db := usersDB(t, path)
			count := 0
			tabletest.TestUsers(t, config, func(t *testing.T, first *tabletest.Handle, shop string) tabletest.Handle {
				count++
				name := fmt.Sprint("orders", count)
				if first != nil {
					name = first.Name
				} else {
					execute(t, db, shopSQL(config, name))
				}
				table, err := sqliteclaim.OpenTable(t.Context(), path, config.Table(name, shop))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, table.Close()) })
				return tabletest.Handle{
					Claimer: table, Name: name,
					Exec: func(t *testing.T, query string) int64 {
						result, err := db.ExecContext(t.Context(), query)
						require.NoError(t, err)
						n, err := result.RowsAffected()
						require.NoError(t, err)
						return n
					},
					Text: func(t *testing.T, query string) string {
						for _, text := range column(t, db, "SELECT coalesce(CAST(v AS TEXT), '') FROM ("+strings.Replace(query, " FROM", " AS v FROM", 1)+")") {
							return text
						}
						return ""
					},
					Put: func(t *testing.T, tasks ...core.Task) {
						columns := tabletest.Columns()
						for _, task := range tasks {
							_, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" ("+strings.Join(columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")",
								config.Row(task, shop, instant)...)
							require.NoError(t, err)
						}
					},
					Literal: func(c claim.TimeColumn, value int64) string { return fmt.Sprintf("'%v'", instant(c, value)) },
					SettleTx: func(t *testing.T, now time.Time, s ...core.Settlement) error {
						tx, err := table.DB().BeginTx(t.Context(), nil)
						require.NoError(t, err)
						defer func() { _ = tx.Rollback() }()
						if err := table.SettleTx(t.Context(), tx, now, s); err != nil {
							return err
						}
						return tx.Commit()
					},
					Touch: func(t *testing.T, literal string) {
						execute(t, db, "CREATE TRIGGER touch_"+name+" AFTER UPDATE ON "+name+" BEGIN UPDATE "+name+" SET updated_at = "+literal+" WHERE order_id = NEW.order_id; END")
					},
					FitErrors: func(t *testing.T, chars int) {
						execute(t, db, fmt.Sprintf("CREATE TRIGGER fit_%[1]s BEFORE UPDATE OF last_error ON %[1]s WHEN length(NEW.last_error) > %[2]d BEGIN SELECT RAISE(ABORT, 'too long'); END", name, chars))
					},
					Transition: func(ctx context.Context, job *core.Job, f func(exec func(query string) error) error) error {
						return table.Transition(ctx, job, func(tx *sql.Tx) error {
							return f(func(query string) error {
								_, err := tx.ExecContext(ctx, query)
								return err
							})
						})
					},
				}
			})
		})
	}
}

package pgclaim

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// count runs a statement of the user's and returns how many rows it changed.
func (s *Store) count(t testing.TB, statement string) int64 {
	t.Helper()
	if s.pool != nil {
		tag, err := s.pool.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
		return tag.RowsAffected()
	}
	result, err := s.db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
	n, err := result.RowsAffected()
	require.NoError(t, err)
	return n
}

// step is Transition of either driver.
func (t *Table) step(ctx context.Context, job *core.Job, f func(exec func(query string) error) error) error {
	if t.pool != nil {
		return t.Transition(ctx, job, func(tx pgx.Tx) error {
			return f(func(query string) error { _, err := tx.Exec(ctx, query); return err })
		})
	}
	return t.TransitionSQL(ctx, job, func(tx *sql.Tx) error {
		return f(func(query string) error { _, err := tx.ExecContext(ctx, query); return err })
	})
}

func (x *shops) tableHandle(table *Table, shop string) tabletest.Handle {
	return tabletest.Handle{
		Claimer: table, Name: table.name,
		Exec: func(t *testing.T, query string) int64 { t.Helper(); return x.first.count(t, query) },
		Text: func(t *testing.T, query string) string {
			t.Helper()
			return strings.Join(x.first.text(t, "SELECT coalesce((SELECT x::text FROM ("+query+") AS q(x)), '')"), "\n")
		},
		Put: func(t *testing.T, tasks ...core.Task) { t.Helper(); x.put(t, table, shop, tasks) },
		Literal: func(c claim.TimeColumn, value int64) string {
			if c.Integer() {
				return fmt.Sprint(value)
			}
			return "'" + instant(c, value) + "'"
		},
		SettleTx: func(t *testing.T, now time.Time, s ...core.Settlement) error {
			t.Helper()
			tx := x.first.begin(t, t.Context())
			defer tx.rollback()
			var err error
			if tx.pgx != nil {
				err = table.SettleTx(t.Context(), tx.pgx, now, s)
			} else {
				err = table.SettleSQLTx(t.Context(), tx.sql, now, s)
			}
			if err != nil {
				return err
			}
			return tx.commit(t.Context())
		},
		Touch: func(t *testing.T, literal string) {
			t.Helper()
			// A deferred one comes with the commit, after all that a statement returns.
			x.first.exec(t, fmt.Sprintf(`CREATE FUNCTION touch_%[1]s() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
				UPDATE %[2]s SET updated_at = %[3]s WHERE order_id = NEW.order_id AND updated_at IS DISTINCT FROM %[3]s; RETURN NULL; END $f$`, table.def.Name, table.name, literal))
			x.first.exec(t, fmt.Sprintf("CREATE CONSTRAINT TRIGGER touch AFTER UPDATE ON %[2]s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION touch_%[1]s()", table.def.Name, table.name))
		},
		FitErrors: func(t *testing.T, chars int) {
			t.Helper()
			if chars > 0 {
				x.first.exec(t, fmt.Sprintf("ALTER TABLE %s ALTER last_error TYPE varchar(%d)", table.name, chars))
			} else {
				x.first.exec(t, fmt.Sprintf("ALTER TABLE %s ADD CHECK (length(last_error) = 0)", table.name))
			}
		},
		Transition: table.step,
	}
}

func TestTheUsersStatementsStayMasterOfTheRows(t *testing.T) {
	url := testserver.Postgres(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	n := int64(0)
	for _, d := range []driver{native, standard} {
		times := withZone
		if !d.native {
			times = withoutZone
			times.Zone = berlin
		}
		for _, config := range tabletest.Configs(times) {
			t.Run(config.Name+"/"+d.name(), func(t *testing.T) {
				t.Attr("dueclaim.backend", config.Backend("postgres"))
				x := newShops(t, d, url, config, "varchar(255)", "shop_state")
				x.count.Store(n)
				tabletest.TestUsers(t, config, func(t *testing.T, first *tabletest.Handle, shop string) tabletest.Handle {
					var table *Table
					if first == nil {
						table = x.fresh(t)
					} else {
						table = first.Claimer.(*Table)
					}
					table = x.first.onTable(t, config.Table(table.def.Name, shop))
					return x.tableHandle(table, shop)
				})
				n = x.count.Load()
			})
		}
	}
}

// Columns without (n) keep microseconds, core's times milliseconds.
func TestFencesOfFinerColumns(t *testing.T) {
	config := tabletest.Finer(withZone, 6)
	x := newShops(t, native, testserver.Postgres(t), config, "varchar(255)", "shop_state")
	t.Attr("dueclaim.backend", config.Backend("postgres"))
	tabletest.TestFences(t, config, func(t *testing.T, _ *tabletest.Handle, shop string) tabletest.Handle {
		table := x.fresh(t)
		return x.tableHandle(x.first.onTable(t, config.Table(table.def.Name, shop)), shop)
	})
}

// An ALTER TABLE, or who waits for one, holds a claim up until nobody waits for it.
func TestAClaimHasNoEffectAfterATableLockThatOutlastedIt(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		for _, config := range tabletest.Configs(withZone) {
			if config.Name == "Transition" {
				continue // a claim only reads
			}
			x := newShops(t, d, testserver.Postgres(t), config, "varchar(255)", "shop_state")
			table := x.fresh(t)
			x.put(t, table, "shop", []core.Task{task("a", 0)})
			lock := x.first.begin(t, t.Context())
			require.NoError(t, lock.exec(t.Context(), "LOCK TABLE "+table.name))
			now, err := table.Now(t.Context())
			require.NoError(t, err)
			l := core.Lease{Holder: "h", Now: at(1), DueBy: at(1), Until: at(31), By: now.Add(200 * time.Millisecond)}
			late := make(chan error, 1)
			go func() {
				_, err := table.Claim(t.Context(), []core.ID{"a"}, l)
				late <- err
			}()
			require.Eventually(t, func() bool {
				now, err := table.Now(t.Context())
				require.NoError(t, err)
				return now.After(l.By)
			}, 10*time.Second, 20*time.Millisecond)
			lock.rollback()
			require.ErrorIs(t, <-late, core.ErrNotDone, config.Name)
			assert.Equal(t, []string{"pending"}, x.first.text(t, "SELECT status::text FROM "+table.name), config.Name)
		}
	})
}

func TestTransitionWantsTheTablesOwnDriver(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	url := testserver.Postgres(t)
	job := &core.Job{Task: core.Task{ID: "1"}}
	pool := native.open(t, url, Options{}).onTable(t, orders("orders", claim.Transition))
	require.ErrorIs(t, pool.TransitionSQL(t.Context(), job, nil), core.ErrInvalid)
	db := standard.open(t, url, Options{}).onTable(t, orders("orders", claim.Transition))
	require.ErrorIs(t, db.Transition(t.Context(), job, nil), core.ErrInvalid)
	for _, table := range []*Table{pool, db} {
		err := table.step(t.Context(), job, nil)
		require.ErrorContains(t, err, "pgclaim: transition: the table orders doesn't fit its definition (Verify says more): ")
		require.ErrorIs(t, table.step(t.Context(), nil, nil), core.ErrInvalid, "no job")
	}
	full := native.open(t, url, Options{}).onTable(t, orders("orders", claim.Full))
	require.ErrorIs(t, full.step(t.Context(), job, nil), core.ErrInvalid, "another mode")
}

// SettleTx makes the completion and the user's writes one.
func TestTableSettlesInTheUsersTransaction(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		times := withZone
		for _, config := range tabletest.Configs(times) {
			if config.Name == "Transition" {
				continue
			}
			x := newShops(t, d, testserver.Postgres(t), config, "varchar(255)", "shop_state")
			table := x.fresh(t)
			x.put(t, table, "shop", []core.Task{task("a", 0), task("b", 0), task("c", 0), task("d", 0)})
			claimed, err := table.Claim(t.Context(), []core.ID{"a", "b", "c", "d"}, core.Lease{Holder: "h", Now: at(1), DueBy: at(1), Until: at(31)})
			require.NoError(t, err)
			settle := func(u *userTx, settlements ...core.Settlement) error {
				if u.pgx != nil {
					return table.SettleTx(t.Context(), u.pgx, at(2), settlements)
				}
				return table.SettleSQLTx(t.Context(), u.sql, at(2), settlements)
			}
			done := func(i int) core.Settlement {
				return core.Settlement{Grant: claimed[i].Grant, Outcome: core.Done}
			}
			states := func() []string {
				return x.first.text(t, "SELECT status::text FROM "+table.name+" ORDER BY order_id")
			}

			tx := x.first.begin(t, t.Context())
			require.NoError(t, settle(tx, done(0)))
			tx.rollback()
			assert.Equal(t, []string{"processing", "processing", "processing", "processing"}, states(), "rolled back")

			x.first.exec(t, "UPDATE "+table.name+" SET status = 'paid' WHERE order_id = 'b'")
			tx = x.first.begin(t, t.Context())
			bad := done(2)
			bad.Outcome = 99
			err = settle(tx, done(3), done(1), bad, done(0), done(0), core.Settlement{Grant: core.Grant{ID: "none", Token: 1, Holder: "h"}, Outcome: core.Done})
			requireItems(t, err, map[int]error{1: core.ErrLeaseLost, 2: core.ErrInvalid, 4: core.ErrInvalid, 5: core.ErrLeaseLost})
			require.NoError(t, tx.exec(t.Context(), "UPDATE "+table.name+" SET kind = 'mine' WHERE order_id = 'c'"), "the transaction can go on")
			require.NoError(t, tx.commit(t.Context()))
			assert.Equal(t, []string{"completed", "paid", "processing", "completed"}, states())

			// The handler runs again, as the reply to its COMMIT was lost; and so does a
			// statement of the same transaction.
			for try := range 2 {
				tx = x.first.begin(t, t.Context())
				requireItems(t, settle(tx, done(0), done(2), done(3)), map[int]error{0: core.ErrLeaseLost, 2: core.ErrLeaseLost})
				if try == 1 {
					requireItems(t, settle(tx, done(2)), map[int]error{0: core.ErrLeaseLost})
				}
				tx.rollback()
				assert.Equal(t, []string{"completed", "paid", "processing", "completed"}, states(), "it is as it was")
			}
			require.NoError(t, table.Settle(t.Context(), at(2), []core.Settlement{done(0), done(3)}), "a repeat by Settle")

			// It waits for a locked row.
			lock := x.first.begin(t, t.Context())
			require.NoError(t, lock.exec(t.Context(), "UPDATE "+table.name+" SET status = 'paid' WHERE order_id = 'c'"))
			tx = x.first.begin(t, t.Context())
			result := make(chan error, 1)
			go func() { result <- settle(tx, done(2)) }()
			require.Eventually(t, func() bool {
				return x.first.text(t, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")[0] == "1"
			}, 10e9, 5e6)
			require.NoError(t, lock.commit(t.Context()))
			require.ErrorIs(t, <-result, core.ErrLeaseLost, "the payment won")
			tx.rollback()
		}
	})
}

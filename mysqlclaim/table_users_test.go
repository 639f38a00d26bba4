package mysqlclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
)

// plainTable is a shop's as people have it: the server's own character set and
// collations, texts for states, NULL where it may be.
const plainTable = `CREATE TABLE %s (
	no INT AUTO_INCREMENT PRIMARY KEY,
	order_id VARCHAR(50) NOT NULL UNIQUE,
	shop VARCHAR(20),
	status VARCHAR(20) NOT NULL,
	created_at $time NULL,
	due_at $time NULL,
	kind VARCHAR(100),
	payload TEXT,
	token BIGINT UNSIGNED,
	holder VARCHAR(64),
	lease_until $time NULL,
	attempts INT UNSIGNED,
	crashes INT UNSIGNED,
	last_error TEXT,
	updated_at $time NULL,
	deleted_at VARCHAR(20) NULL,
	KEY sweep (shop, status, $due, order_id)
)`

// users returns a handle for the tests of what users do, on a table of its own or
// that of first.
func (x *shops) users(t *testing.T, first *tabletest.Handle, shop, ddl string) tabletest.Handle {
	name := fmt.Sprintf("plain%d", x.made)
	if first == nil {
		x.made++
		name = fmt.Sprintf("plain%d", x.made)
		due, _ := x.def(name).Due.Source()
		x.make(t, ddl, name, "$time", timeType(x.config.Time()), "$due", due.Name)
	}
	table := newTable(t, x.dbs[0], x.config.Table(name, shop))
	return tabletest.Handle{
		Claimer: table, Name: name,
		Exec: func(t *testing.T, query string) int64 {
			t.Helper()
			result, err := x.db.ExecContext(t.Context(), query)
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			return n
		},
		Text: func(t *testing.T, query string) string {
			t.Helper()
			var text sql.NullString
			if err := x.db.QueryRowContext(t.Context(), query).Scan(&text); !errors.Is(err, sql.ErrNoRows) {
				require.NoError(t, err)
			}
			return text.String
		},
		Put: func(t *testing.T, tasks ...core.Task) { x.putIn(t, name, shop, tasks) },
		Literal: func(c claim.TimeColumn, value int64) string {
			if c.Integer() {
				return fmt.Sprint(value)
			}
			return "'" + c.Text(value) + "'"
		},
		SettleTx: func(t *testing.T, now time.Time, s ...core.Settlement) error {
			t.Helper()
			tx, err := x.dbs[0].BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			if err := table.SettleTx(t.Context(), tx, now, s); err != nil {
				return err
			}
			return tx.Commit()
		},
		Touch: func(t *testing.T, literal string) {
			x.exec(t, "CREATE TRIGGER touch_"+name+" BEFORE UPDATE ON "+name+" FOR EACH ROW SET NEW.updated_at = "+literal)
		},
		FitErrors: func(t *testing.T, chars int) {
			x.exec(t, fmt.Sprintf("ALTER TABLE %s MODIFY last_error VARCHAR(%d) CHARACTER SET utf8mb4", name, chars))
		},
		Transition: func(ctx context.Context, job *core.Job, f func(exec func(query string) error) error) error {
			return table.Transition(ctx, job, func(tx *sql.Tx) error {
				return f(func(query string) error { _, err := tx.ExecContext(ctx, query); return err })
			})
		},
	}
}

func TestTheUsersStatementsStayMasterOfTheRows(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	onEach(t, func(t *testing.T, b backend) {
		for _, native := range []claim.TimeColumn{{Kind: claim.DateTime, Digits: 3, Zone: zone}, {Kind: claim.Timestamp, Digits: 3}} {
			for _, config := range tabletest.Configs(native) {
				if config.Name == "Full" && native.Kind == claim.Timestamp {
					continue // its times are integers
				}
				t.Run(config.Name+", "+native.Kind.String(), func(t *testing.T) {
					t.Parallel()
					t.Attr("dueclaim.backend", config.Backend(b.name))
					x := newShops(t, b, config, "time_zone=%27%2B05%3A30%27")
					tabletest.TestUsers(t, config, func(t *testing.T, first *tabletest.Handle, shop string) tabletest.Handle {
						return x.users(t, first, shop, plainTable)
					})
				})
			}
		}
	})
}

// Columns of six digits keep microseconds, core's times milliseconds.
func TestFencesOfFinerColumns(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for _, times := range []claim.TimeColumn{{Kind: claim.DateTime, Zone: time.UTC}, {Kind: claim.Timestamp}} {
			t.Run(times.Kind.String(), func(t *testing.T) {
				config := tabletest.Finer(times, 6)
				t.Attr("dueclaim.backend", config.Backend(b.name))
				x := newShops(t, b, config, "time_zone=%27%2B05%3A30%27")
				tabletest.TestFences(t, config, func(t *testing.T, first *tabletest.Handle, shop string) tabletest.Handle {
					return x.users(t, first, shop, plainTable)
				})
			})
		}
	})
}

// SettleTx makes the completion and the user's writes one.
func TestTableSettlesInTheUsersTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for _, config := range tabletest.Configs(claim.TimeColumn{Kind: claim.Timestamp, Digits: 3}) {
			if config.Name == "Transition" {
				continue
			}
			t.Run(config.Name, func(t *testing.T) {
				t.Attr("dueclaim.backend", b.name)
				x := newShops(t, b, config, "time_zone=%27%2B05%3A30%27")
				h := x.users(t, nil, "a", plainTable)
				table, ctx := h.Claimer.(*Table), t.Context()
				h.Put(t, core.Task{ID: "1", Due: base}, core.Task{ID: "2", Due: base}, core.Task{ID: "paid", Due: base})
				grants, err := table.Claim(ctx, []core.ID{"1", "2", "paid"}, leaseOf("h", base))
				require.NoError(t, err)
				settle := func(tx *sql.Tx, outcome core.Outcome, of ...core.Claimed) error {
					var list []core.Settlement
					for _, c := range of {
						list = append(list, core.Settlement{Grant: c.Grant, Outcome: outcome, Due: at(5000), Err: "no"})
					}
					return table.SettleTx(ctx, tx, at(1), list)
				}
				begin := func() *sql.Tx {
					tx, err := x.dbs[0].BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
					require.NoError(t, err)
					var n int
					require.NoError(t, tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+h.Name).Scan(&n), "a snapshot")
					return tx
				}
				read := func(id string) string { return h.Text(t, "SELECT status FROM "+h.Name+" WHERE order_id = '"+id+"'") }

				tx := begin()
				h.Exec(t, "UPDATE "+h.Name+" SET status = 'paid' WHERE order_id = 'paid'")
				err = settle(tx, core.Done, grants...)
				var refused *core.BatchError
				require.True(t, errors.As(err, &refused), "%v", err)
				require.Len(t, refused.Items, 1, "%v", err)
				assert.Equal(t, 2, refused.Items[0].Index)
				require.ErrorIs(t, err, core.ErrLeaseLost)
				require.NoError(t, tx.Rollback())
				assert.Equal(t, "processing paid", read("1")+" "+read("paid"), "all of it was undone")

				if config.Name == "StatusUpdated" { // what was undone it can't know; its fences stand where they stood
					require.NoError(t, table.Extend(ctx, []core.Grant{grants[0].Grant}, at(40_000)))
				}
				tx = begin()
				_, err = tx.ExecContext(ctx, "UPDATE "+h.Name+" SET payload = 'shipped' WHERE order_id = '1'")
				require.NoError(t, err)
				require.NoError(t, settle(tx, core.Done, grants[0]))
				require.NoError(t, settle(tx, core.Retry, grants[1]))
				require.NoError(t, tx.Commit())
				assert.Equal(t, "completed pending", read("1")+" "+read("2"))

				tx = begin()
				require.ErrorIs(t, table.SettleTx(ctx, tx, at(1), []core.Settlement{{Grant: grants[0].Grant}}), core.ErrInvalid)
				require.NoError(t, tx.Rollback())

				// The handler runs again, as the reply to its COMMIT was lost.
				h.Put(t, core.Task{ID: "more", Due: base})
				more, err := table.Claim(ctx, []core.ID{"more"}, leaseOf("m", base))
				require.NoError(t, err)
				for _, again := range []struct {
					outcome core.Outcome
					of      []core.Claimed
				}{{core.Done, grants[:1]}, {core.Retry, grants[1:2]}, {core.Done, []core.Claimed{grants[0], more[0]}}} {
					tx = begin()
					_, err = tx.ExecContext(ctx, "UPDATE "+h.Name+" SET payload = 'twice' WHERE order_id = '1'")
					require.NoError(t, err)
					for try, left := range []int{1, len(again.of)} { // of one that this transaction settled, too
						require.True(t, errors.As(settle(tx, again.outcome, again.of...), &refused), "try %d", try)
						require.Len(t, refused.Items, left, "try %d: %v", try, refused)
						assert.Equal(t, 0, refused.Items[0].Index)
						require.ErrorIs(t, refused, core.ErrLeaseLost)
					}
					require.NoError(t, tx.Rollback())
				}
				assert.Equal(t, "completed pending processing", read("1")+" "+read("2")+" "+read("more"))
				assert.Equal(t, "shipped", h.Text(t, "SELECT payload FROM "+h.Name+" WHERE order_id = '1'"))
				require.NoError(t, table.Settle(ctx, at(1), []core.Settlement{{Grant: grants[0].Grant, Outcome: core.Done}}), "a repeat by Settle")
			})
		}
	})
}

// LOCK TABLES holds a claim up until nobody waits for it.
func TestAClaimHasNoEffectAfterATableLockThatOutlastedIt(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for _, config := range tabletest.Configs(claim.TimeColumn{Kind: claim.Timestamp, Digits: 3}) {
			if config.Name == "Transition" {
				continue // a claim only reads
			}
			x := newShops(t, b, config, "time_zone=%27%2B05%3A30%27")
			h := x.users(t, nil, "a", plainTable)
			table, ctx := h.Claimer.(*Table), t.Context()
			h.Put(t, core.Task{ID: "1", Due: base})
			_, err := table.Claim(ctx, []core.ID{"none"}, leaseOf("h", base)) // the catalogue is known
			require.NoError(t, err)
			locker, err := x.db.Conn(ctx)
			require.NoError(t, err)
			_, err = locker.ExecContext(ctx, "LOCK TABLES "+h.Name+" WRITE")
			require.NoError(t, err)
			now, err := table.Now(ctx)
			require.NoError(t, err)
			l := leaseOf("h", base)
			l.By = now.Add(200 * time.Millisecond)
			late := make(chan error, 1)
			go func() {
				_, err := table.Claim(ctx, []core.ID{"1"}, l)
				late <- err
			}()
			require.Eventually(t, func() bool {
				now, err := table.Now(ctx)
				require.NoError(t, err)
				return now.After(l.By)
			}, 10*time.Second, 20*time.Millisecond)
			_, err = locker.ExecContext(ctx, "UNLOCK TABLES")
			require.NoError(t, err)
			require.NoError(t, locker.Close())
			require.ErrorIs(t, <-late, core.ErrNotDone, config.Name)
			assert.Equal(t, "pending", h.Text(t, "SELECT status FROM "+h.Name), config.Name)
		}
	})
}

func TestTransitionIsForItsModeOnly(t *testing.T) {
	table := newTable(t, open(t, "root@tcp(127.0.0.1:1)/x", ""), recipeDef("orders"))
	require.ErrorIs(t, table.Transition(t.Context(), &core.Job{Task: core.Task{ID: "1"}}, nil), core.ErrInvalid)
}

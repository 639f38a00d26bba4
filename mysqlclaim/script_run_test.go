package mysqlclaim_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/sqlmocked"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/mysqlclaim"
)

// Every statement, value and answer, without a server.
func TestStatementsFollowTheScript(t *testing.T) {
	for name, c := range map[string]struct{ deletes, mariadb bool }{
		"keeps finished": {false, false}, "deletes finished": {true, false},
		"keeps finished, on MariaDB": {false, true}, "deletes finished, on MariaDB": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			deletes, steps := c.deletes, scripts(c.deletes)
			if c.mariadb {
				steps = onMariaDB(steps)
			}
			t.Attr("dueclaim.backend", "double:mysqlclaim on sqlmock")
			costs := map[string]int{
				"cost/insert": 1, "cost/claim": 2, "cost/extend": 1, "cost/settle": 1, "cost/cancel": 2,
				"cost/reschedule": 1, "cost/waiting": 1, "cost/purge": 4,
			}
			if deletes {
				costs["cost/cancel"] = 3
			}
			lockTimeout := error(&mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded; try restarting transaction"})
			if c.mariadb {
				lockTimeout = nil // there, some statements are answered with another one
			}
			conformance.TestSQL(t, conformance.SQL{
				New: func(t *testing.T, db *sql.DB) core.Store {
					s, err := mysqlclaim.New(db, mysqlclaim.Options{DeleteFinished: deletes})
					require.NoError(t, err)
					return s
				},
				Play:    sqlmocked.Play,
				Scripts: steps,
				Costs:   costs,
				Errors: conformance.SQLErrors{
					Deadlock:      &mysql.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock; try restarting transaction"},
					LockTimeout:   lockTimeout,
					Serialization: &mysql.MySQLError{Number: 1020, Message: "Record has changed since last read in table 'dueclaim_tasks'"},
					ReadOnly:      &mysql.MySQLError{Number: 1290, Message: "The MySQL server is running with the --read-only option so it cannot execute this statement"},
					LostBefore:    driver.ErrBadConn,
					LostAfter:     mysql.ErrInvalidConn,
				},
				InsertTx: func(ctx context.Context, s core.Store, tx *sql.Tx, call core.Call, tasks []core.Task) error {
					return s.(*mysqlclaim.Store).InsertTx(ctx, tx, call, tasks)
				},
				SettleTx: func(ctx context.Context, s core.Store, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
					return s.(*mysqlclaim.Store).SettleTx(ctx, tx, now, settlements)
				},
				Provides: conformance.StoreProvides{TimeSource: true, Purger: true, KeepsFinished: !deletes},
			})
		})
	}
}

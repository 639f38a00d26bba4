package pgclaim_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/sqlmocked"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/pgclaim"
)

// Every statement, value and answer, without a server.
func TestStatementsFollowTheScript(t *testing.T) {
	for name, deletes := range map[string]bool{"keeps finished": false, "deletes finished": true} {
		t.Run(name, func(t *testing.T) {
			t.Attr("dueclaim.backend", "double:pgclaim on sqlmock")
			costs := map[string]int{
				"cost/insert": 1, "cost/claim": 1, "cost/extend": 1, "cost/settle": 1, "cost/cancel": 1,
				"cost/reschedule": 1, "cost/waiting": 1, "cost/purge": 1,
			}
			conformance.TestSQL(t, conformance.SQL{
				New: func(t *testing.T, db *sql.DB) core.Store {
					s, err := pgclaim.NewSQL(db, pgclaim.Options{DeleteFinished: deletes})
					require.NoError(t, err)
					return s
				},
				Play:    sqlmocked.Play,
				Scripts: scripts(deletes),
				Costs:   costs,
				Errors: conformance.SQLErrors{
					Deadlock:      &pgconn.PgError{Severity: "ERROR", Code: "40P01", Message: "deadlock detected"},
					LockTimeout:   &pgconn.PgError{Severity: "ERROR", Code: "55P03", Message: "canceling statement due to lock timeout"},
					Serialization: &pgconn.PgError{Severity: "ERROR", Code: "40001", Message: "could not serialize access due to concurrent update"},
					ReadOnly:      &pgconn.PgError{Severity: "ERROR", Code: "25006", Message: "cannot execute UPDATE in a read-only transaction"},
					LostBefore:    driver.ErrBadConn,
					LostAfter:     io.ErrUnexpectedEOF,
				},
				InsertTx: func(ctx context.Context, s core.Store, tx *sql.Tx, call core.Call, tasks []core.Task) error {
					return s.(*pgclaim.Store).InsertSQLTx(ctx, tx, call, tasks)
				},
				SettleTx: func(ctx context.Context, s core.Store, tx *sql.Tx, now time.Time, settlements []core.Settlement) error {
					return s.(*pgclaim.Store).SettleSQLTx(ctx, tx, now, settlements)
				},
				Provides: conformance.StoreProvides{TimeSource: true, Purger: true, KeepsFinished: !deletes},
			})
		})
	}
}

package mysqlclaim

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// A handler's transaction that has read before a heartbeat changed its task's row can
// complete the task all the same, at each isolation level, and also where the server
// refuses to write what changed since the snapshot (MariaDB's default from 11.6.2 on).
func TestATransactionLongerThanAHeartbeatCanSettle(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		settings := []string{"", "isolation=READ-COMMITTED"}
		if b.name == "store:mariadb" {
			settings = append(settings, "innodb_snapshot_isolation=1", "innodb_snapshot_isolation=1&isolation=READ-COMMITTED")
		}
		for _, set := range settings {
			for _, deletes := range []bool{false, true} {
				db := open(t, b.database(t), b.options(set))
				s := newStore(t, db, Options{DeleteFinished: deletes})
				longTransaction(t, db, s)
			}
		}
	})
}

func longTransaction(t *testing.T, db *sql.DB, s *Store) {
	ctx := t.Context()
	insert(t, s, someTasks("n", 3)...)
	insert(t, s, task("dead"))
	dead := grant(t, s, leaseOf("h", base), "dead")[0]
	got := grant(t, s, leaseOf("h", base), idsOf(someTasks("n", 3))...)
	for _, stmt := range []string{
		"CREATE TABLE orders (id VARCHAR(40) CHARACTER SET ascii PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'new', due BIGINT NOT NULL, " +
			"token BIGINT, holder VARCHAR(64), lease BIGINT, KEY (state, due))",
		"INSERT INTO orders (id, due) VALUES ('o', 1)",
	} {
		_, err := db.ExecContext(ctx, stmt)
		require.NoError(t, err)
	}
	table := newTable(t, db, claim.Table{
		Name: "orders", ID: claim.IDColumn{Name: "id"},
		State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("at work"), Done: claim.Text("done")},
		Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.UnixMilli}},
		Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease", Kind: claim.UnixMilli},
	})
	order, err := table.Claim(ctx, []core.ID{"o"}, leaseOf("h", base))
	require.NoError(t, err)
	require.Equal(t, core.Granted, order[0].Verdict)

	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	var n int
	require.NoError(t, tx.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM dueclaim_tasks) + (SELECT COUNT(*) FROM orders)").Scan(&n), "its snapshot")
	var grants []core.Grant
	var done []core.Settlement
	for _, c := range got {
		grants = append(grants, c.Grant)
		done = append(done, core.Settlement{Grant: c.Grant, Outcome: core.Done})
	}
	require.NoError(t, s.Extend(ctx, grants, at(99_000)), "a heartbeat")
	require.NoError(t, table.Extend(ctx, []core.Grant{order[0].Grant}, at(99_000)))
	require.NoError(t, s.Settle(ctx, base, []core.Settlement{{Grant: dead.Grant, Outcome: core.DeadLetter}}))
	require.NoError(t, s.SettleTx(ctx, tx, base, done[:1]), "one")
	require.NoError(t, s.SettleTx(ctx, tx, base, done[1:]), "several")
	require.NoError(t, table.SettleTx(ctx, tx, base, []core.Settlement{{Grant: order[0].Grant, Outcome: core.Done}}))
	insertion := s.InsertTx(ctx, tx, callNamed("tx"), []core.Task{task("new")})
	require.NoError(t, insertion)
	require.NoError(t, tx.Commit())
	list, err := s.Waiting(ctx, at(1), core.Entry{}, endOfTime, 10)
	require.NoError(t, err)
	require.Equal(t, []core.Entry{{ID: "new", Due: base}}, list)
}

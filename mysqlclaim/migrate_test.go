package mysqlclaim

import (
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

func TestAnyNumberOfProcessesMayMigrateAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			s, err := New(open(t, dsn, ""), Options{})
			require.NoError(t, err)
			wg.Go(func() {
				for range 3 {
					errs[i] = s.Migrate(t.Context())
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			assert.NoError(t, err)
		}
	})
}

func TestMigrateKeepsTheRows(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		insert(t, s, task("a"))
		require.NoError(t, s.Migrate(t.Context()))
		grant(t, s, leaseOf("h", base), "a")
	})
}

func TestMigrateRefusesAnotherProgramsTable(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		db := open(t, b.database(t), "")
		for _, ddl := range []string{
			"CREATE TABLE tasks (id INT PRIMARY KEY)",
			"CREATE TABLE newer (id INT PRIMARY KEY) COMMENT='dueclaim schema 2'",
		} {
			_, err := db.ExecContext(t.Context(), ddl)
			require.NoError(t, err)
		}
		for _, table := range []string{"tasks", "newer"} {
			s, err := New(db, Options{Table: table})
			require.NoError(t, err)
			require.ErrorContains(t, s.Migrate(t.Context()), "another program's, or of a newer version")
		}
	})
}

func TestATableMayBeInAnotherDatabase(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		other := b.database(t)
		schema := other[strings.LastIndexByte(other, '/')+1:]
		s := newStore(t, open(t, b.database(t), ""), Options{Table: schema + ".jobs$1"})
		insert(t, s, task("a"))
		grant(t, s, leaseOf("h", base), "a")
	})
}

func TestNamesThatCouldBreakAStatementAreRefused(t *testing.T) {
	db := open(t, "root@tcp(127.0.0.1:1)/db", "")
	for _, table := range []string{"a`b", "a'b", "a b", "a\x00b", "1a", "a.b.c", "a;b", strings.Repeat("a", 59), "ä"} {
		_, err := New(db, Options{Table: table})
		assert.ErrorIs(t, err, core.ErrInvalid, "table %q", table)
	}
	for _, queue := range []string{" q", "q\x00", "q\n", strings.Repeat("q", 101), "\xff"} {
		_, err := New(db, Options{Queue: queue})
		assert.ErrorIs(t, err, core.ErrInvalid, "queue %q", queue)
	}
	_, err := New(nil, Options{})
	assert.ErrorIs(t, err, core.ErrInvalid)
}

func TestQueuesOfATableDontMeet(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		db := open(t, b.database(t), "")
		q1 := newStore(t, db, Options{Queue: "q"})
		q2 := newStore(t, db, Options{Queue: "Q'"})
		insert(t, q1, task("a"))
		got, err := q2.Claim(t.Context(), []core.ID{"a"}, leaseOf("h", base))
		require.NoError(t, err)
		assert.Equal(t, core.Gone, got[0].Verdict)
		insert(t, q2, task("a"))
		c := grant(t, q2, leaseOf("h", base), "a")[0]
		require.NoError(t, q2.Settle(t.Context(), base, []core.Settlement{{Grant: c.Grant, Outcome: core.Done}}))
		n, err := q1.Purge(t.Context(), at(1), 10)
		require.NoError(t, err)
		assert.Zero(t, n)
		grant(t, q1, leaseOf("h", base), "a")
	})
}

func TestTheViewIsForPeople(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := newStore(t, open(t, b.database(t), "time_zone=%27%2B03%3A00%27"), Options{})
		ctx := t.Context()
		insert(t, s, core.Task{ID: "größe", Kind: "mail", Due: endOfTime}, task("b"))
		c := grant(t, s, leaseOf("h", base), "b")[0]
		require.NoError(t, s.Extend(ctx, []core.Grant{c.Grant}, at(322)))
		var due, lease string
		require.NoError(t, s.db.QueryRowContext(ctx, "SELECT due FROM dueclaim_tasks_view WHERE id = 'größe' AND queue = 'default'").Scan(&due))
		assert.Regexp(t, `^9999-12-31 23:59:59\.999`, due)
		require.NoError(t, s.db.QueryRowContext(ctx, "SELECT due, lease_until FROM dueclaim_tasks_view WHERE status = 'running'").Scan(&due, &lease))
		assert.Regexp(t, `^2030-01-02 03:04:05\.678`, due, "UTC, whatever the session's zone is")
		assert.Regexp(t, `^2030-01-02 03:04:35\.678`, lease, "never shortened")
		var finished sql.NullString
		require.NoError(t, s.db.QueryRowContext(ctx, "SELECT finished_at, lease_until FROM dueclaim_tasks_view WHERE status = 'pending'").Scan(&finished, &finished))
		assert.False(t, finished.Valid)
	})
}

func TestOperatorsStatementsWork(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		ctx := t.Context()
		insert(t, s, task("order-17"), task("dead"))
		c := grant(t, s, leaseOf("h", base), "dead")[0]
		require.NoError(t, s.Settle(ctx, base, []core.Settlement{{Grant: c.Grant, Outcome: core.DeadLetter, Err: "no"}}))
		// As in the package's documentation.
		for _, stmt := range []string{
			`UPDATE dueclaim_tasks SET status = 'cancelled', due = NULL, lease_until = 0,
			 finished_at = UNIX_TIMESTAMP() * 1000
			 WHERE queue = 'default' AND id = 'order-17' AND status = 'pending'`,
			`UPDATE dueclaim_tasks SET status = 'pending', finished_at = NULL, attempts = 0,
			 crashes = 0, due = UNIX_TIMESTAMP() * 1000, planned = UNIX_TIMESTAMP() * 1000
			 WHERE queue = 'default' AND id = 'dead' AND status = 'dead'`,
		} {
			res, err := s.db.ExecContext(ctx, stmt)
			require.NoError(t, err)
			n, err := res.RowsAffected()
			require.NoError(t, err)
			assert.Equal(t, int64(1), n)
		}
		now, err := s.Now(ctx)
		require.NoError(t, err)
		got, err := s.Claim(ctx, []core.ID{"order-17", "dead"}, leaseOf("h2", now))
		require.NoError(t, err)
		assert.Equal(t, []core.Verdict{core.Gone, core.Granted}, verdicts(got))
		assert.Equal(t, 1, got[1].Attempt)
	})
}

func TestWorkingNeedsNoDDLRights(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		admin := newStore(t, open(t, dsn, ""), Options{})
		schema := dsn[strings.LastIndexByte(dsn, '/')+1:]
		user := "w" + schema[len(schema)-10:]
		for _, stmt := range []string{
			"CREATE USER '" + user + "'@'%' IDENTIFIED BY 'pw'",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON " + schema + ".* TO '" + user + "'@'%'",
		} {
			_, err := admin.db.ExecContext(t.Context(), stmt)
			require.NoError(t, err)
		}
		t.Cleanup(func() { _, _ = admin.db.Exec("DROP USER '" + user + "'@'%'") })
		worker, err := New(open(t, user+":pw"+dsn[strings.LastIndexByte(dsn, '@'):], ""), Options{DeleteFinished: true})
		require.NoError(t, err)
		insert(t, worker, task("a"))
		c := grant(t, worker, leaseOf("h", base), "a")[0]
		require.NoError(t, worker.Settle(t.Context(), base, []core.Settlement{{Grant: c.Grant, Outcome: core.Done}}))
		_, err = worker.Now(t.Context())
		require.NoError(t, err)
		require.NoError(t, worker.Migrate(t.Context()), "nothing is to be done")
		another, err := New(worker.db, Options{Table: "another"})
		require.NoError(t, err)
		require.ErrorContains(t, another.Migrate(t.Context()), "denied")
	})
}

// A console that has read the view in a transaction holds it against every change.
func TestMigrateOfACurrentTableWaitsForNobody(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		s := newStore(t, open(t, dsn, ""), Options{})
		insert(t, s, task("a"))
		tx, err := s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		var n int
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM dueclaim_tasks_view").Scan(&n))
		ctx, cancel := contextFor(t, soon)
		defer cancel()
		another, err := New(open(t, dsn, ""), Options{})
		require.NoError(t, err)
		require.NoError(t, another.Migrate(ctx))
		require.NoError(t, tx.Rollback())
		unlock := lockTables(t, s) // not even this
		defer unlock()
		require.NoError(t, another.Migrate(ctx))
	})
}

func TestMigrateMakesAnOlderViewNewAndSaysWhatIsInItsWay(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		exec := func(stmt string) {
			_, err := s.db.ExecContext(t.Context(), stmt)
			require.NoError(t, err)
		}
		exec("CREATE OR REPLACE VIEW dueclaim_tasks_view AS SELECT id, status FROM dueclaim_tasks")
		tx, err := s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		var n int
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM dueclaim_tasks_view").Scan(&n))
		require.ErrorContains(t, s.Migrate(t.Context()), "a transaction that has read dueclaim_tasks_view has been open")
		require.NoError(t, tx.Rollback())
		require.NoError(t, s.Migrate(t.Context()))
		exec("SELECT call_id FROM dueclaim_tasks_view")
		exec("DROP VIEW dueclaim_tasks_view")
		require.NoError(t, s.Migrate(t.Context()))
		exec("SELECT call_id FROM dueclaim_tasks_view")
		exec("DROP VIEW dueclaim_tasks_view")
		exec("CREATE TABLE dueclaim_tasks_view (id INT)")
		require.Error(t, s.Migrate(t.Context()), "it is a table of somebody's")
	})
}

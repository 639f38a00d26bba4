package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/tabletest"
)

// login is a user of a test's own, with no rights at first.
type login struct {
	owner    *sql.DB
	config   *mysql.Config
	name     string // quoted
	database string
}

func newLogin(t *testing.T, owner *sql.DB, dsn string) *login {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	l := &login{owner: owner, config: config, database: config.DBName}
	config.User, config.Passwd = "w_"+config.DBName, "wrk-s3cret"
	l.name = "'" + config.User + "'@'%'"
	l.exec(t, "CREATE USER "+l.name+" IDENTIFIED BY '"+config.Passwd+"'")
	t.Cleanup(func() { _, _ = owner.ExecContext(context.WithoutCancel(t.Context()), "DROP USER "+l.name) })
	return l
}

func (l *login) exec(t *testing.T, statement string) {
	t.Helper()
	_, err := l.owner.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

func (l *login) grant(t *testing.T, rights, table string) {
	t.Helper()
	l.exec(t, "GRANT "+rights+" ON "+l.database+"."+table+" TO "+l.name)
}

func (l *login) revoke(t *testing.T, rights, table string) {
	t.Helper()
	l.exec(t, "REVOKE "+rights+" ON "+l.database+"."+table+" FROM "+l.name)
}

// refused is an error that comes soon, says that a right is missing and for what,
// and doesn't show the password.
func denied(t *testing.T, what, right string, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := call(ctx)
	require.NoError(t, ctx.Err(), "%s hangs", what)
	require.ErrorContains(t, err, right+" command denied to user", "%s", what)
	assert.ErrorContains(t, err, claim.DefaultTable, "%s", what)
	assert.NotContains(t, err.Error(), "s3cret", "%s", what)
}

// TestAUserWithFourGrantsOnTheTableDoesTheWholeJob: what docs/operations.md says a
// worker needs is all that it needs, and all that it has.
func TestAUserWithFourGrantsOnTheTableDoesTheWholeJob(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		ctx, dsn := t.Context(), b.database(t)
		owner := open(t, dsn, "")
		newStore(t, owner, Options{})
		user := newLogin(t, owner, dsn)
		user.grant(t, "SELECT, INSERT, UPDATE, DELETE", claim.DefaultTable)
		db := open(t, user.config.FormatDSN(), "")
		for _, ddl := range []string{"CREATE TABLE x (a INT)", "ALTER TABLE dueclaim_tasks ADD x INT", "DROP TABLE dueclaim_tasks", "SELECT * FROM mysql.user"} {
			_, err := db.ExecContext(ctx, ddl)
			require.ErrorContains(t, err, "denied", "%s", ddl)
		}
		s, err := New(db, Options{Queue: "whole life"})
		require.NoError(t, err)
		wholeLife(t, s)
		for _, o := range []Options{{Queue: "kept"}, {Queue: "deleted", DeleteFinished: true}} {
			s, err := New(db, o)
			require.NoError(t, err)
			wholeJob(t, s)
		}
		refusals(t, user, s)
	})
}

// wholeJob runs a producer and a scheduler on a store.
func wholeJob(t *testing.T, s *Store) {
	ctx := t.Context()
	idx, runs := heapindex.New(), 0
	producer, err := core.NewProducer(idx, s, core.ProducerOptions{})
	require.NoError(t, err)
	now := time.Now()
	require.NoError(t, producer.Schedule(ctx, core.Task{ID: "a", Due: now}, core.Task{ID: "b", Due: now}, core.Task{ID: "c", Due: now.Add(time.Hour)}, core.Task{ID: "d", Due: now.Add(time.Hour)}))
	require.NoError(t, producer.Reschedule(ctx, core.Move{ID: "c", To: now}))
	fates, err := producer.Cancel(ctx, "d")
	require.NoError(t, err)
	require.Equal(t, []core.Fate{core.Cancelled}, fates)
	// The scheduler's index is empty: it finds its tasks by sweeps alone.
	handler := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		runs++
		if job.Task.ID == "a" { // in a transaction of its own
			tx, err := s.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := s.SettleTx(ctx, tx, job.Now(), []core.Settlement{job.Done()}); err != nil {
				return err
			}
			if err := tx.Commit(); err != nil {
				return err
			}
			return core.Settled
		}
		return nil
	})
	scheduler, err := core.New(heapindex.New(), s, handler, core.Options{Slots: 1})
	require.NoError(t, err)
	for range 10 {
		_, err = scheduler.Tick(ctx, time.Now().Add(5*time.Second))
		require.NoError(t, err)
	}
	assert.Equal(t, 3, runs)
	left, err := s.Waiting(ctx, now, core.Entry{}, now.Add(24*time.Hour), 10)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// refusals takes one right away at a time.
func refusals(t *testing.T, user *login, s *Store) {
	g := core.Grant{ID: "x", Token: 1, Holder: "h"}
	insert := func(ctx context.Context) error { return s.Insert(ctx, callNamed("c"), []core.Task{task("x")}) }
	schedule := func(ctx context.Context) error {
		p, err := core.NewProducer(heapindex.New(), s, core.ProducerOptions{})
		require.NoError(t, err)
		return p.Schedule(ctx, task("x"))
	}
	claimIt := func(ctx context.Context) error {
		_, err := s.Claim(ctx, []core.ID{"x"}, leaseOf("h", base))
		return err
	}
	type step struct {
		what string
		call func(context.Context) error
	}
	for right, steps := range map[string][]step{
		"INSERT": {{"insert", insert}, {"schedule", schedule}},
		"UPDATE": {
			{"claim", claimIt},
			{"extend", func(ctx context.Context) error { return s.Extend(ctx, []core.Grant{g}, at(9000)) }},
			{"settle", func(ctx context.Context) error {
				return s.Settle(ctx, base, []core.Settlement{{Grant: g, Outcome: core.Done}})
			}},
			{"reschedule", func(ctx context.Context) error {
				return s.Reschedule(ctx, core.Call{Now: base}, []core.Move{{ID: "x", To: base}})
			}},
			{"cancel", func(ctx context.Context) error {
				_, err := s.Cancel(ctx, core.Call{Now: base}, []core.ID{"x"})
				return err
			}},
		},
		"DELETE": {{"purge", func(ctx context.Context) error { _, err := s.Purge(ctx, at(100_000), 10); return err }}},
		"SELECT": {
			{"claim", claimIt},
			{"sweep", func(ctx context.Context) error {
				_, err := s.Waiting(ctx, base, core.Entry{}, at(1), 10)
				return err
			}},
		},
	} {
		user.revoke(t, right, claim.DefaultTable)
		for _, step := range steps {
			denied(t, step.what, right, step.call)
		}
		user.grant(t, right, claim.DefaultTable)
	}
}

// TestAUsersTableNeedsSelectAndUpdateOfWhatIsWritten: in each mode, rights on the
// columns that docs/tables.md names are enough, and without them the error says so.
func TestAUsersTableNeedsSelectAndUpdateOfWhatIsWritten(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		user := newLogin(t, f.db, f.dsn)
		for _, c := range tabletest.WrittenColumns() {
			name := c.Name
			t.Run(name, func(t *testing.T) {
				f.small(t, name, "INT", claim.IntegerID, "1", "2", "3")
				f.exec(t, "UPDATE "+name+" SET lease = 0")
				def := smallDef(name, claim.IntegerID)
				c.Change(&def)
				user.grant(t, "SELECT", name)
				table := newTable(t, open(t, user.config.FormatDSN(), ""), def)
				if def.Mode() != claim.Transition { // there a claim only reads
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					_, err := table.Claim(ctx, []core.ID{"1"}, leaseOf("h0", base))
					require.ErrorContains(t, err, "UPDATE command denied")
					require.NoError(t, ctx.Err())
				}
				user.grant(t, "UPDATE ("+c.Columns+")", name)
				ids := []core.ID{"1", "2", "3"}
				got, err := table.Claim(t.Context(), ids, leaseOf("h", base))
				require.NoError(t, err)
				for _, g := range got {
					require.Equal(t, core.Granted, g.Verdict, "%s", g.ID)
				}
				require.NoError(t, table.Extend(t.Context(), []core.Grant{got[0].Grant}, base.Add(40*time.Second)))
				if def.Mode() == claim.Transition {
					require.NoError(t, table.Settle(t.Context(), at(1), []core.Settlement{{Grant: got[1].Grant, Outcome: core.Retry, Due: at(5), Err: "it's late"}}))
				} else {
					require.NoError(t, table.Settle(t.Context(), at(1), []core.Settlement{
						{Grant: got[1].Grant, Outcome: core.Retry, Due: at(5), Err: "it's late"}, {Grant: got[2].Grant, Outcome: core.Done},
					}))
				}
				_, err = table.Waiting(t.Context(), at(10), core.Entry{}, endOfTime, 10)
				require.NoError(t, err)
				_, err = table.db.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET id = 9", name))
				require.ErrorContains(t, err, "denied", "what isn't written needs no right")
				found, err := table.Verify(t.Context())
				require.NoError(t, err)
				_, missing := find(found, "privilege", "")
				assert.False(t, missing, "%s", found)
			})
		}
	})
}

package mysqlclaim

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// rowOf is what a row looks like, or nothing.
func rowOf(t *testing.T, s *Store, id core.ID) string {
	t.Helper()
	rows, err := s.readBack(t.Context(), s.auto(time.Time{}), func(w *text) { w.val(string(id)) })
	require.NoError(t, err)
	row, ok := rows[id]
	if !ok {
		return ""
	}
	return strings.TrimSpace(string(row.Status) + " " + row.CallID + " " + claim.Time(row.Due).Format(time.RFC3339Nano) + " " + strings.TrimSpace(row.Holder))
}

// call is one that carries By.
type givenUp struct {
	name string
	do   func(ctx context.Context, by time.Time) error
	id   core.ID
}

// givenUps are all of them, on rows of a fresh Store.
func givenUps(t *testing.T, s *Store) []givenUp {
	insert(t, s, task("claimed"), task("moved"), task("cancelled"), task("used"))
	c := grant(t, s, leaseOf("first", base), "used")[0]
	require.NoError(t, s.Settle(t.Context(), base, []core.Settlement{{Grant: c.Grant, Outcome: core.DeadLetter}}))
	return []givenUp{
		{"claim", func(ctx context.Context, by time.Time) error {
			lease := leaseOf("late", base)
			lease.By = by
			_, err := s.Claim(ctx, []core.ID{"claimed"}, lease)
			return err
		}, "claimed"},
		{"reschedule", func(ctx context.Context, by time.Time) error {
			return s.Reschedule(ctx, core.Call{Now: base, By: by}, []core.Move{{ID: "moved", To: at(99)}})
		}, "moved"},
		{"cancel", func(ctx context.Context, by time.Time) error {
			_, err := s.Cancel(ctx, core.Call{Now: base, By: by}, []core.ID{"cancelled"})
			return err
		}, "cancelled"},
		{"insert", func(ctx context.Context, by time.Time) error {
			return s.Insert(ctx, core.Call{ID: "late", Now: base, By: by}, []core.Task{task("new"), task("new too")})
		}, "new"},
		{"insert again", func(ctx context.Context, by time.Time) error {
			return s.Insert(ctx, core.Call{ID: "late", Now: base, By: by}, []core.Task{task("used")})
		}, "used"},
	}
}

func TestACallThatComesAfterItsTimeChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for _, deletes := range []bool{false, true} {
			s := fresh(t, b, Options{DeleteFinished: deletes})
			now, err := s.Now(t.Context())
			require.NoError(t, err)
			for _, c := range givenUps(t, s) {
				before := rowOf(t, s, c.id)
				require.ErrorIs(t, c.do(t.Context(), now.Add(-time.Millisecond)), core.ErrNotDone, c.name)
				assert.Equal(t, before, rowOf(t, s, c.id), c.name)
				require.NoError(t, c.do(t.Context(), now.Add(time.Minute)), c.name)
				assert.NotEqual(t, before, rowOf(t, s, c.id), "%s: in time", c.name)
			}
		}
	})
}

// waiting tells how many statements of this database wait or run at the server.
func waitingAtServer(t *testing.T, admin *sql.DB) (n int) {
	t.Helper()
	require.NoError(t, admin.QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info IS NOT NULL AND id <> CONNECTION_ID()").Scan(&n))
	return n
}

// lockTables keeps everybody else from the task table, as LOCK TABLES, a backup and an
// ALTER TABLE behind a long reader do.
func lockTables(t *testing.T, s *Store) (unlock func()) {
	t.Helper()
	c, err := s.db.Conn(t.Context())
	require.NoError(t, err)
	_, err = c.ExecContext(t.Context(), "LOCK TABLES "+s.quoted+" WRITE")
	require.NoError(t, err)
	return func() {
		_, err := c.ExecContext(context.WithoutCancel(t.Context()), "UNLOCK TABLES")
		require.NoError(t, err)
		_ = c.Close()
	}
}

// What was given up while it waited for the table takes no effect when the lock goes,
// and nobody is told anything else.
func TestACallThatWasGivenUpAtALockedTableChangesNothingLater(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		for _, c := range givenUps(t, s) {
			before := rowOf(t, s, c.id)
			unlock := lockTables(t, s)
			now, err := s.Now(t.Context())
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			require.Error(t, c.do(ctx, now.Add(200*time.Millisecond)), c.name)
			cancel()
			require.Eventually(t, func() bool {
				later, err := s.Now(t.Context())
				return err == nil && later.Sub(now) > 300*time.Millisecond
			}, soon, 10*time.Millisecond)
			unlock()
			require.Eventually(t, func() bool { return waitingAtServer(t, s.db) == 0 }, soon, 10*time.Millisecond, c.name)
			assert.Equal(t, before, rowOf(t, s, c.id), c.name)
		}
	})
}

// Nothing waits at the server for longer than its caller does, so that repeats don't
// pile up there.
func TestNothingWaitsForLongAtALockedTable(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{DeleteFinished: true})
		insert(t, s, task("a"))
		c := grant(t, s, leaseOf("h", base), "a")[0]
		unlock := lockTables(t, s)
		defer unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 4*soon)
		defer cancel()
		g := []core.Grant{c.Grant}
		_, waits := s.Waiting(ctx, base, core.Entry{}, at(1), 1)
		_, claims := s.Claim(ctx, []core.ID{"a"}, leaseOf("h2", at(99)))
		_, cancels := s.Cancel(ctx, core.Call{Now: base}, []core.ID{"a"})
		_, purges := s.Purge(ctx, base, 9)
		for name, err := range map[string]error{
			"waiting": waits, "purge": purges,
			"claim": claims, "cancel": cancels,
			"insert":     s.Insert(ctx, callNamed("x"), []core.Task{task("x")}),
			"reschedule": s.Reschedule(ctx, core.Call{Now: base}, []core.Move{{ID: "a", To: at(1)}}),
			"extend":     s.Extend(ctx, g, at(99)),
			"settle":     s.Settle(ctx, at(1), []core.Settlement{{Grant: c.Grant, Outcome: core.Done}}),
			"probe":      s.Probe(ctx),
		} {
			require.Error(t, err, name)
			assert.Equal(t, uint16(errLockTimeout), number(err), "%s: %v", name, err)
			if name != "waiting" && name != "purge" {
				assert.ErrorIs(t, err, core.ErrNotDone, name)
			}
		}
	})
}

// MySQL can't be told how long one statement may wait for a row, so an INSERT looks at
// the clock again when it has waited for another transaction's insert of the same id.
func TestAnInsertThatWasGivenUpAtALockedRowChangesNothingLater(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		ctx := t.Context()
		for _, list := range [][]core.Task{{task("x")}, {task("a"), task("x"), task("z")}, {task("a"), task("b"), task("x")}} {
			tx, err := s.db.BeginTx(ctx, nil)
			require.NoError(t, err)
			require.NoError(t, s.InsertTx(ctx, tx, callNamed("theirs"), []core.Task{task("x")}))
			now, err := s.Now(ctx)
			require.NoError(t, err)
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			require.Error(t, s.Insert(short, core.Call{ID: "late", Now: base, By: now.Add(200 * time.Millisecond)}, list))
			cancel()
			require.Eventually(t, func() bool {
				later, err := s.Now(ctx)
				return err == nil && later.Sub(now) > 300*time.Millisecond
			}, soon, 10*time.Millisecond)
			require.NoError(t, tx.Rollback())
			require.Eventually(t, func() bool { return waitingAtServer(t, s.db) == 0 }, soon, 10*time.Millisecond)
			for _, task := range list {
				assert.Empty(t, rowOf(t, s, task.ID), "%s of %d", task.ID, len(list))
			}
		}
	})
}

// The first token of a row is the server's clock, whatever a producer believes.
func TestTokensRiseForAnIDWhoseRowWasDeleted(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{DeleteFinished: true})
		ctx := t.Context()
		last := int64(0)
		for i := range 60 {
			call := core.Call{ID: "call-" + string(rune('A'+i)), Now: base.AddDate(-i%7, 0, 0)} // producers don't agree
			one, two := task("one"), task("two")
			require.NoError(t, s.Insert(ctx, call, []core.Task{one, two}))
			for _, c := range grant(t, s, leaseOf("h", base), "one", "two") {
				require.Greater(t, c.Grant.Token, last, "round %d", i)
				require.NoError(t, s.Settle(ctx, base, []core.Settlement{{Grant: c.Grant, Outcome: core.Done}}))
				if c.ID == "two" {
					last = c.Grant.Token
				}
			}
		}
	})
}

// A row that an INSERT makes after it has waited for another one has a token of that later
// moment: the id may have been used and its row deleted meanwhile.
func TestTokensRiseForAnIDThatWasUsedWhileAnInsertWaited(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{DeleteFinished: true})
		ctx := t.Context()
		tx, err := s.db.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		require.NoError(t, s.InsertTx(ctx, tx, callNamed("theirs"), []core.Task{task("a")}))
		inserted := make(chan error, 1)
		go func() { inserted <- s.Insert(ctx, callNamed("held up"), []core.Task{task("a"), task("z")}) }()
		require.Eventually(t, func() bool { return waitingAtServer(t, s.db) == 1 }, soon, 10*time.Millisecond)
		time.Sleep(100 * time.Millisecond)

		insert(t, s, task("z"))
		first := grant(t, s, leaseOf("first", base), "z")[0].Grant
		require.NoError(t, s.Settle(ctx, base, []core.Settlement{{Grant: first, Outcome: core.Done}}))

		require.NoError(t, tx.Rollback())
		require.NoError(t, <-inserted)
		second := grant(t, s, leaseOf("second", base), "z")[0].Grant
		assert.Greater(t, second.Token, first.Token)
	})
}

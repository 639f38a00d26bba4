package pgclaim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// ready stores what each of writes changes.
func ready(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.Insert(t.Context(), call("ready"), []core.Task{task("claimed", 0), task("cancelled", 0), task("moved", 0), task("replaced", 0)}))
	grant := s.claimOne(t, "replaced", lease("ready", 0)).Grant
	require.NoError(t, s.Settle(t.Context(), at(1), []core.Settlement{{Grant: grant, Outcome: core.Done}}))
}

// writes are the calls that carry a By.
func writes(s *Store) map[string]func(ctx context.Context, by time.Time) error {
	return map[string]func(ctx context.Context, by time.Time) error{
		"claim": func(ctx context.Context, by time.Time) error {
			l := lease("h", 0)
			l.By = by
			_, err := s.Claim(ctx, []core.ID{"claimed"}, l)
			return err
		},
		"insert": func(ctx context.Context, by time.Time) error {
			return s.Insert(ctx, core.Call{ID: "i", Now: base, By: by}, []core.Task{task("new", 0)})
		},
		"insert again": func(ctx context.Context, by time.Time) error {
			return s.Insert(ctx, core.Call{ID: "r", Now: base, By: by}, []core.Task{task("replaced", 0)})
		},
		"cancel": func(ctx context.Context, by time.Time) error {
			_, err := s.Cancel(ctx, core.Call{Now: base, By: by}, []core.ID{"cancelled"})
			return err
		},
		"reschedule": func(ctx context.Context, by time.Time) error {
			return s.Reschedule(ctx, core.Call{Now: base, By: by}, []core.Move{{ID: "moved", To: at(9)}})
		},
	}
}

// rows is all that is in the table.
func (s *Store) rows(t *testing.T) []string {
	return s.text(t, "SELECT t::text FROM "+s.quoted()+" AS t ORDER BY id")
}

// waiting waits until n sessions of the database wait for a lock.
func (s *Store) waitingForLocks(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return s.text(t, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")[0] == fmt.Sprint(n)
	}, 20*time.Second, 10*time.Millisecond)
}

func TestACallThatComesAfterItsByChangesNothingAndSaysSo(t *testing.T) {
	eachMode(t, func(t *testing.T, d driver) {
		for _, deletes := range []bool{false, true} {
			s := d.migrated(t, Options{DeleteFinished: deletes})
			ready(t, s)
			now, err := s.Now(t.Context())
			require.NoError(t, err)
			before := s.rows(t)
			for name, write := range writes(s) {
				require.ErrorIs(t, write(t.Context(), now), core.ErrNotDone, name)
			}
			require.Equal(t, before, s.rows(t))
			for name, write := range writes(s) {
				require.NoError(t, write(t.Context(), now.Add(time.Minute)), name)
			}
			require.NotEqual(t, before, s.rows(t))
		}
	})
}

// As an ALTER TABLE or a backup would hold them up, also where the caller has gone by then
// and the pooler has kept the statement.
func TestAWriteThatWaitedForTheTableBeyondItsByChangesNothing(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	url := testserver.Postgres(t)
	s := native.open(t, url, Options{})
	require.NoError(t, s.Migrate(t.Context()))
	ready(t, s)
	before := s.rows(t)
	for name, through := range map[string]string{"direct": url, "pgbouncer": testserver.PgBouncer(t, url)} {
		for _, d := range []driver{native, standard} {
			other := d.open(t, through, Options{})
			for op, write := range writes(other) {
				tx := s.begin(t, t.Context())
				require.NoError(t, tx.exec(t.Context(), "LOCK TABLE dueclaim_tasks IN ACCESS EXCLUSIVE MODE"))
				now, err := s.Now(t.Context())
				require.NoError(t, err)
				by := now.Add(200 * time.Millisecond)
				end := make(chan error, 1)
				go func() { end <- write(context.WithoutCancel(t.Context()), by) }()
				s.waitingForLocks(t, 1)
				require.Eventually(t, func() bool { now, err := s.Now(t.Context()); return err == nil && now.After(by) }, 20*time.Second, 10*time.Millisecond)
				tx.rollback()
				require.ErrorIs(t, <-end, core.ErrNotDone, "%s %s %s", name, d.name(), op)
				require.Equal(t, before, s.rows(t), "%s %s %s", name, d.name(), op)
			}
		}
	}
}

// The wait comes in the middle of the statement, after its rows were judged.
func TestAnInsertThatWaitedForAnothersBeyondItsByChangesNothing(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		tx := s.begin(t, t.Context())
		require.NoError(t, tx.insert(t.Context(), call("other"), task("a", 0)))
		now, err := s.Now(t.Context())
		require.NoError(t, err)
		by := now.Add(200 * time.Millisecond)
		end := make(chan error, 1)
		go func() {
			end <- s.Insert(context.WithoutCancel(t.Context()), core.Call{ID: "c", Now: base, By: by}, []core.Task{task("a", 0), task("b", 0)})
		}()
		s.waitingForLocks(t, 1)
		require.Eventually(t, func() bool { now, err := s.Now(t.Context()); return err == nil && now.After(by) }, 20*time.Second, 10*time.Millisecond)
		tx.rollback()
		require.ErrorIs(t, <-end, core.ErrNotDone)
		assert.Empty(t, s.rows(t))
	})
}

// The user's own transaction bounds what is written in it.
func TestInsertTxHasNoBy(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		tx := s.begin(t, t.Context())
		require.NoError(t, tx.insert(t.Context(), core.Call{ID: "c", Now: base, By: base.AddDate(-20, 0, 0)}, task("a", 0)))
		require.NoError(t, tx.commit(t.Context()))
		assert.Len(t, s.rows(t), 1)
	})
}

// Whatever a producer believes the time is, and when its transaction began.
func TestTokensRiseForAnIdThatIsUsedAgainAfterItsDeletion(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{DeleteFinished: true})
		old := s.begin(t, t.Context())
		require.NoError(t, old.exec(t.Context(), "SELECT 1")) // its now() is now
		last := int64(0)
		run := func() {
			grant := s.claimOne(t, "a", lease(fmt.Sprint("h", last), 0)).Grant
			require.Greater(t, grant.Token, last)
			last = grant.Token
			require.NoError(t, s.Settle(t.Context(), at(1), []core.Settlement{{Grant: grant, Outcome: core.Done}}))
		}
		for i, ago := range []time.Duration{0, time.Hour, 0, -time.Hour, 0, 24 * time.Hour} {
			require.NoError(t, s.Insert(t.Context(), core.Call{ID: fmt.Sprint("c", i), Now: time.Now().Add(-ago)}, []core.Task{task("a", 0)}))
			run()
		}
		require.NoError(t, old.insert(t.Context(), core.Call{ID: "in-tx", Now: time.Now().Add(-time.Hour)}, task("a", 0)))
		require.NoError(t, old.commit(t.Context()))
		run()
	})
}

func TestAReplacedRowsTokenGoesOnFromTheOldOneOrTheClock(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.migrated(t, Options{})
	for i, ahead := range []string{"1000", "9000000000000000"} { // of long ago, and of a clock that was set back
		require.NoError(t, s.Insert(t.Context(), call(fmt.Sprint("c", i)), []core.Task{task("a", 0)}))
		s.exec(t, "UPDATE dueclaim_tasks SET status = 'dead', due = NULL, finished_at = 1, token = $1::text::bigint", ahead)
		require.NoError(t, s.Insert(t.Context(), call(fmt.Sprint("again", i)), []core.Task{task("a", 0)}))
		token := s.claimOne(t, "a", lease("h", 0)).Grant.Token
		if i == 0 {
			assert.WithinDuration(t, time.Now(), time.UnixMicro(token), time.Minute)
		} else {
			assert.Equal(t, int64(9_000_000_000_000_002), token)
		}
		s.exec(t, "DELETE FROM dueclaim_tasks")
	}
}

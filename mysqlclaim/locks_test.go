package mysqlclaim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// The servers wait 50 seconds for a row lock; what ends in 5 didn't wait.
const soon = 5 * time.Second

var isolations = []string{"READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"}

// busy fails unless err says that exactly the item at place 1 was locked.
func busy(t *testing.T, err error, about string) {
	t.Helper()
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch, about)
	require.Len(t, batch.Items, 1, about)
	assert.Equal(t, 1, batch.Items[0].Index, about)
	assert.ErrorIs(t, batch.Items[0].Err, core.ErrBusy, about)
}

func TestALockedRowHoldsUpNobody(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		for _, isolation := range isolations {
			t.Run(isolation, func(t *testing.T) {
				s := newStore(t, open(t, dsn, b.options("isolation="+isolation)), Options{Queue: isolation})
				passOverLocked(t, s)
			})
		}
	})
}

func passOverLocked(t *testing.T, s *Store) {
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	insert(t, s, task("a"), task("locked"), task("z"))
	ids := []core.ID{"a", "locked", "z", "missing"}

	unlock := lockRow(t, s, "locked")
	got, err := s.Claim(ctx, ids, leaseOf("h", base))
	require.NoError(t, err)
	assert.Equal(t, []core.Verdict{core.Granted, core.Refused, core.Granted, core.Gone}, verdicts(got))
	got, err = s.Claim(ctx, []core.ID{"locked"}, leaseOf("h", base))
	require.NoError(t, err)
	assert.Equal(t, []core.Verdict{core.Refused}, verdicts(got), "alone, where the row might be read as a constant")
	require.ErrorIs(t, s.Reschedule(ctx, core.Call{Now: base}, []core.Move{{ID: "locked", To: at(9)}}), core.ErrBusy)
	unlock()

	claimed := grant(t, s, leaseOf("h", base), ids[:3]...)
	grants := []core.Grant{claimed[0].Grant, claimed[1].Grant, claimed[2].Grant}
	unlock = lockRow(t, s, "locked")
	busy(t, s.Extend(ctx, grants, at(50_000)), "extend")
	err = s.Extend(ctx, grants[1:2], at(50_000))
	require.ErrorIs(t, err, core.ErrBusy, "extend alone")
	for _, outcome := range []core.Outcome{core.Retry, core.Released} {
		err = s.Settle(ctx, base, []core.Settlement{{Grant: grants[1], Outcome: outcome, Due: base}})
		require.ErrorIs(t, err, core.ErrBusy, "%s", outcome)
	}
	busy(t, s.Settle(ctx, base, []core.Settlement{
		{Grant: grants[0], Outcome: core.Done}, {Grant: grants[1], Outcome: core.Done}, {Grant: grants[2], Outcome: core.DeadLetter},
	}), "settle")
	_, err = s.Cancel(ctx, core.Call{Now: base}, []core.ID{"a", "locked", "z"})
	busy(t, err, "cancel")
	_, err = s.Waiting(ctx, base, core.Entry{}, at(1), 10)
	require.NoError(t, err)
	unlock()

	unlock = lockRow(t, s, "a")
	n, err := s.Purge(ctx, at(1), 10)
	require.NoError(t, err)
	assert.Zero(t, n, "a is locked, z is dead, locked runs")
	unlock()
	require.NoError(t, s.Settle(ctx, base, []core.Settlement{{Grant: grants[1], Outcome: core.Done}}), "it was as it had been")
}

func verdicts(got []core.Claimed) []core.Verdict {
	list := make([]core.Verdict, len(got))
	for i, c := range got {
		list[i] = c.Verdict
	}
	return list
}

func TestNothingStaysLockedOrOpenWhenAMethodHasReturned(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{DeleteFinished: true})
		wholeSet := someTasks("n", 30)
		insert(t, s, wholeSet...)
		claimed := grant(t, s, leaseOf("h", base), idsOf(wholeSet)...)
		require.NoError(t, s.Settle(t.Context(), base, []core.Settlement{{Grant: claimed[0].Grant, Outcome: core.Done}}))
		_, err := s.Cancel(t.Context(), core.Call{Now: base}, []core.ID{claimed[1].ID})
		require.NoError(t, err)
		var open int
		require.NoError(t, s.db.QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID() AND trx_rows_locked > 0").Scan(&open))
		assert.Zero(t, open)
	})
}

// A gap lock of a claim for a missing id must not outlive the claim, nor those
// of a read-back exist: a producer inserts there.
func TestAClaimOfAMissingIDDoesNotStopItsInsert(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		for i := range 20 {
			id := core.ID(fmt.Sprint("n", i))
			got, err := s.Claim(ctx, []core.ID{id, "a", "z"}, leaseOf("h", base))
			require.NoError(t, err)
			assert.Equal(t, core.Gone, got[0].Verdict)
			require.NoError(t, s.Insert(ctx, callNamed(fmt.Sprint("c", i)), []core.Task{task(id)}))
		}
	})
}

func TestACallEndsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		insert(t, s, task("a"))
		unlock := lockRow(t, s, "a")
		defer unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := s.Insert(ctx, callNamed("waits for the lock"), []core.Task{task("a")})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Less(t, time.Since(start), soon)

		_, err = s.Claim(ctx, []core.ID{"a"}, leaseOf("h", base))
		require.ErrorIs(t, err, context.DeadlineExceeded, "a done ctx")
	})
}

package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// begin starts a transaction of the test's own; it is rolled back with the test
// unless it was committed.
func begin(t *testing.T, s *Store) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestTasksOfATransactionExistIfItCommits(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		ctx := t.Context()
		for _, commit := range []bool{false, true} {
			tx := begin(t, s)
			require.NoError(t, s.InsertTx(ctx, tx, callNamed("c"), []core.Task{task("a")}))
			got, err := s.Claim(ctx, []core.ID{"a"}, leaseOf("h", base))
			require.NoError(t, err)
			assert.Equal(t, core.Gone, got[0].Verdict, "nobody sees it yet, nor waits for it")
			if commit {
				require.NoError(t, tx.Commit())
			} else {
				require.NoError(t, tx.Rollback())
			}
			got, err = s.Claim(ctx, []core.ID{"a"}, leaseOf("h", base))
			require.NoError(t, err)
			assert.Equal(t, commit, got[0].Verdict == core.Granted)
		}
	})
}

func TestARefusalLeavesTheTransactionAsItCanBeCommitted(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		for _, isolation := range isolations {
			t.Run(isolation, func(t *testing.T) {
				s := newStore(t, open(t, dsn, b.options("isolation="+isolation)), Options{Queue: isolation})
				ctx := t.Context()
				insert(t, s, task("live"), task("done"))
				old := grant(t, s, leaseOf("h", base), "done")[0]
				require.NoError(t, s.Settle(ctx, base, []core.Settlement{{Grant: old.Grant, Outcome: core.Done}}))

				tx := begin(t, s)
				// The transaction's snapshot is older than what happens next.
				var n int
				require.NoError(t, tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM dueclaim_tasks").Scan(&n))
				if isolation != "SERIALIZABLE" { // there the reading locks
					insert(t, s, task("newer"))
				}
				bad := task("bad")
				bad.Due = time.Time{}
				odd := task("odd")
				odd.Due = base.Add(time.Nanosecond)
				list := []core.Task{task("live"), bad, task("new"), task("new"), task("done"), task(""), odd}
				if isolation != "SERIALIZABLE" {
					list = append(list, task("newer"))
				}
				err := s.InsertTx(ctx, tx, callNamed("c"), list)
				var batch *core.BatchError
				require.ErrorAs(t, err, &batch)
				want := map[int]error{0: core.ErrExists, 1: core.ErrInvalid, 3: core.ErrInvalid, 5: core.ErrInvalid, 7: core.ErrExists}
				for _, item := range batch.Items {
					require.ErrorIs(t, item.Err, want[item.Index], "item %d", item.Index)
					delete(want, item.Index)
				}
				if isolation == "SERIALIZABLE" {
					delete(want, 7)
				}
				assert.Empty(t, want, "got %v", err)
				require.NoError(t, tx.Commit())

				entries, err := s.Waiting(ctx, base, core.Entry{}, at(2), 10)
				require.NoError(t, err)
				assert.Contains(t, entries, core.Entry{ID: "new", Due: base})
				assert.Contains(t, entries, core.Entry{ID: "done", Due: base}, "replaced")
				assert.Contains(t, entries, core.Entry{ID: "odd", Due: at(1)}, "rounded up")
			})
		}
	})
}

func TestACompletionIsCommittedWithTheCallersOwnChanges(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		ctx := t.Context()
		_, err := s.db.ExecContext(ctx, "CREATE TABLE effects (id VARCHAR(20) PRIMARY KEY)")
		require.NoError(t, err)
		insert(t, s, task("a"), task("b"))
		first := grant(t, s, leaseOf("h", base), "a", "b")
		later := at(40_000)
		second := grant(t, s, leaseOf("h2", later), "a")

		tx := begin(t, s)
		_, err = tx.ExecContext(ctx, "INSERT INTO effects VALUES ('first')")
		require.NoError(t, err)
		err = s.SettleTx(ctx, tx, later, []core.Settlement{{Grant: first[0].Grant, Outcome: core.Done}, {Grant: first[1].Grant, Outcome: 9}})
		require.ErrorIs(t, err, core.ErrLeaseLost, "the zombie learns it before its commit")
		require.ErrorIs(t, err, core.ErrInvalid)
		require.NoError(t, tx.Rollback())

		tx = begin(t, s)
		_, err = tx.ExecContext(ctx, "INSERT INTO effects VALUES ('second')")
		require.NoError(t, err)
		long := strings.Repeat("ä\x00\xff", 3000)
		require.NoError(t, s.SettleTx(ctx, tx, later.Add(time.Nanosecond), []core.Settlement{
			{Grant: second[0].Grant, Outcome: core.Done},
			{Grant: first[1].Grant, Outcome: core.Retry, Due: later.Add(time.Nanosecond), Err: long},
		}))
		// A heartbeat meanwhile isn't held up.
		short, cancel := context.WithTimeout(ctx, soon)
		defer cancel()
		require.ErrorIs(t, s.Extend(short, []core.Grant{second[0].Grant}, at(100_000)), core.ErrBusy)
		require.NoError(t, tx.Commit())

		var effect, lastError string
		require.NoError(t, s.db.QueryRowContext(ctx, "SELECT id FROM effects").Scan(&effect))
		assert.Equal(t, "second", effect)
		require.NoError(t, s.db.QueryRowContext(ctx, "SELECT last_error FROM dueclaim_tasks_view WHERE id = 'b'").Scan(&lastError))
		assert.LessOrEqual(t, len(lastError), core.MaxErrorBytes)
		got, err := s.Claim(ctx, []core.ID{"a", "b"}, leaseOf("h3", later))
		require.NoError(t, err)
		assert.Equal(t, []core.Verdict{core.Gone, core.NotDue}, verdicts(got), "rounded up: not due yet")
	})
}

func TestSettleTxWaitsForARowThatAHeartbeatHas(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{DeleteFinished: true})
		insert(t, s, task("a"))
		c := grant(t, s, leaseOf("h", base), "a")[0]
		unlock := lockRow(t, s, "a")
		done := make(chan error, 1)
		tx := begin(t, s)
		go func() {
			done <- s.SettleTx(t.Context(), tx, base, []core.Settlement{{Grant: c.Grant, Outcome: core.Done}})
		}()
		require.Eventually(t, func() bool { return waitingForLock(t, s) }, soon, trxRefresh)
		unlock()
		require.NoError(t, <-done)
		require.NoError(t, tx.Commit())
		got, err := s.Claim(t.Context(), []core.ID{"a"}, leaseOf("h2", base))
		require.NoError(t, err)
		assert.Equal(t, core.Gone, got[0].Verdict)
	})
}

// trxRefresh is how often innodb_trx may be read: InnoDB keeps what it showed for
// as long as the last look is less than a tenth of a second ago, so a reader that
// is quicker sees the first answer for ever.
const trxRefresh = 250 * time.Millisecond

// waitingForLock tells whether a transaction of the server waits for a lock.
func waitingForLock(t *testing.T, s *Store) bool {
	t.Helper()
	var n int
	require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&n))
	return n > 0
}

// Half a transaction must not be committed after a lock wait time-out: the error
// says so, and the lock is still the other's.
func TestALockWaitTimeoutInATransactionIsReturned(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		s := newStore(t, open(t, dsn, "innodb_lock_wait_timeout=1"), Options{})
		insert(t, s, task("a"))
		c := grant(t, s, leaseOf("h", base), "a")[0]
		unlock := lockRow(t, s, "a")
		defer unlock()
		tx := begin(t, s)
		err := s.SettleTx(t.Context(), tx, base, []core.Settlement{{Grant: c.Grant, Outcome: core.Done}})
		require.ErrorContains(t, err, "roll the transaction back")
		assert.Equal(t, uint16(errLockTimeout), number(err))
		require.NoError(t, tx.Rollback())
	})
}

func TestInsertTxChecksTheCall(t *testing.T) {
	s, script := scripted(t)
	script.ExpectBegin()
	script.ExpectRollback()
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, call := range []core.Call{
		{Now: base}, {ID: "c"}, {ID: "c d", Now: base}, {ID: "ä", Now: base}, {ID: strings.Repeat("c", 65), Now: base}, {ID: "c\x00", Now: base},
	} {
		require.ErrorIs(t, s.InsertTx(t.Context(), tx, call, []core.Task{task("a")}), core.ErrInvalid)
	}
	require.NoError(t, tx.Rollback())
}

// Of a batch with an id twice the first one counts, in a large batch too.
func TestOfAnIDThatIsInABatchTwiceTheFirstOneCounts(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		var batch []core.Task
		for i := range 200 {
			one := task(core.ID(fmt.Sprint("t", i%20)))
			one.Kind = fmt.Sprint("k", i)
			batch = append(batch, one)
		}
		tx, err := s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		var refused *core.BatchError
		require.ErrorAs(t, s.InsertTx(t.Context(), tx, callNamed("c"), batch), &refused)
		require.Len(t, refused.Items, 180)
		for i, item := range refused.Items {
			require.Equal(t, 20+i, item.Index)
		}
		require.NoError(t, tx.Commit())
		for i, c := range grant(t, s, leaseOf("h", base), idsOf(batch[:20])...) {
			require.Equal(t, fmt.Sprint("k", i), c.Task.Kind)
		}
		// And of settlements.
		grants := grant(t, s, leaseOf("h", base), idsOf(batch[:20])...)
		var settlements []core.Settlement
		for i := range 100 {
			outcome := core.Done
			if i >= 20 {
				outcome = core.DeadLetter
			}
			settlements = append(settlements, core.Settlement{Grant: grants[i%20].Grant, Outcome: outcome})
		}
		tx, err = s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		require.ErrorAs(t, s.SettleTx(t.Context(), tx, base, settlements), &refused)
		require.Len(t, refused.Items, 80)
		require.Equal(t, 20, refused.Items[0].Index)
	})
}

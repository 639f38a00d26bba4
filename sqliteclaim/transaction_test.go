package sqliteclaim_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

func TestInsertTxFollowsTheTransaction(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	s := open(t, file(t), sqliteclaim.Options{})
	insert(t, s, "c", "live")
	for _, commit := range []bool{false, true} {
		tx, err := s.DB().BeginTx(t.Context(), nil)
		require.NoError(t, err)
		err = s.InsertTx(t.Context(), tx, call(fmt.Sprint("d", commit)), []core.Task{
			{ID: "bad\n", Due: noon}, {ID: "a", Due: noon.Add(1)}, {ID: "live", Due: noon}, {ID: "b"}, {ID: "c", Due: noon}, {ID: "a", Due: noon},
		})
		var batch *core.BatchError
		require.ErrorAs(t, err, &batch)
		require.Len(t, batch.Items, 4)
		for i, want := range []struct {
			index int
			err   error
		}{{0, core.ErrInvalid}, {2, core.ErrExists}, {3, core.ErrInvalid}, {5, core.ErrInvalid}} {
			require.Equal(t, want.index, batch.Items[i].Index)
			require.ErrorIs(t, batch.Items[i], want.err)
		}
		if commit {
			require.NoError(t, tx.Commit(), "refusals leave the transaction usable")
		} else {
			require.NoError(t, tx.Rollback())
		}
		left := column(t, s.DB(), "SELECT id || ' ' || due FROM dueclaim_tasks WHERE id <> 'live' ORDER BY id")
		if commit {
			ms := noon.UnixMilli()
			require.Equal(t, []string{fmt.Sprint("a ", ms+1), fmt.Sprint("c ", ms)}, left, "rounded up")
		} else {
			require.Empty(t, left)
		}
	}
}

func TestSettleTxFollowsTheTransaction(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	s := open(t, file(t), sqliteclaim.Options{})
	insert(t, s, "c", "a", "b", "r")
	g := grant(t, s, lease("h", 1, 10), "a", "b", "r")
	stale := g[1]
	stale.Token--
	settle := func(tx *sql.Tx) error {
		return s.SettleTx(t.Context(), tx, noon, []core.Settlement{
			{Grant: stale, Outcome: core.Done}, {Grant: g[0], Outcome: core.Done},
			{Grant: g[2], Outcome: core.Retry, Due: noon.Add(1), Err: "broken \xff and \x00" + strings.Repeat("é", 3000)},
			{Grant: core.Grant{ID: "x", Holder: "h"}, Outcome: core.Outcome(9)}, {Grant: core.Grant{ID: "y", Holder: "h"}, Outcome: core.Retry},
		})
	}
	for _, commit := range []bool{false, true} {
		tx, err := s.DB().BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS effects (id TEXT)")
		require.NoError(t, err)
		err = settle(tx)
		var batch *core.BatchError
		require.ErrorAs(t, err, &batch)
		require.Len(t, batch.Items, 3)
		require.ErrorIs(t, batch.Items[0], core.ErrLeaseLost)
		require.ErrorIs(t, batch.Items[1], core.ErrInvalid)
		require.ErrorIs(t, batch.Items[2], core.ErrInvalid)
		if commit {
			require.NoError(t, tx.Commit())
		} else {
			require.NoError(t, tx.Rollback())
			require.NoError(t, s.Extend(t.Context(), g, at(20)), "still held")
		}
	}
	require.Equal(t, []string{"done", "running", "pending"}, column(t, s.DB(), "SELECT status FROM dueclaim_tasks ORDER BY id"))
	text := column(t, s.DB(), "SELECT last_error FROM dueclaim_tasks WHERE id = 'r'")[0]
	require.LessOrEqual(t, len(text), core.MaxErrorBytes)
	require.True(t, strings.HasPrefix(text, "broken \uFFFD and \uFFFDé"), text)
	require.NoError(t, s.Settle(t.Context(), noon, []core.Settlement{{Grant: g[0], Outcome: core.Done}}), "a repeat outside is a success")
}

func TestQueuesOfOneTableDontMeet(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	one, two := open(t, path, sqliteclaim.Options{Queue: "one"}), open(t, path, sqliteclaim.Options{Queue: "two"})
	insert(t, one, "c", "a", "b")
	insert(t, two, "c", "a")
	g := grant(t, one, lease("h", 1, 10), "a")
	require.ErrorIs(t, two.Settle(t.Context(), noon, []core.Settlement{{Grant: g[0], Outcome: core.Done}}), core.ErrLeaseLost)
	entries, err := two.Waiting(t.Context(), at(1), core.Entry{}, at(60), 10)
	require.NoError(t, err)
	require.Equal(t, []core.Entry{{ID: "a", Due: noon}}, entries)
	fates, err := two.Cancel(t.Context(), core.Call{Now: noon}, []core.ID{"a", "b"})
	require.NoError(t, err)
	require.Equal(t, []core.Fate{core.Cancelled, core.Unknown}, fates)
	require.NoError(t, one.Extend(t.Context(), g, at(99)))
}

func TestGoroutinesThatContendHaveOneWinnerForEachTask(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	all := ids(1000)
	insert(t, open(t, path, sqliteclaim.Options{}), "c", all...)
	var won atomic.Int64
	var wg sync.WaitGroup
	for handle := range 8 {
		s := open(t, path, sqliteclaim.Options{})
		for g := range 2 {
			wg.Go(func() {
				for i := 0; i < len(all); i += 100 {
					claimed, err := claimInsisting(t.Context(), s, all[i:i+100], lease(fmt.Sprint(handle, "-", g, "-", i), 1, 10))
					assert.NoError(t, err)
					for _, c := range claimed {
						if c.Verdict == core.Granted {
							won.Add(1)
						}
					}
				}
			})
		}
	}
	wg.Wait()
	require.EqualValues(t, len(all), won.Load())
}

// A call that is cancelled at any instant leaves no transaction open, and the
// Store usable.
func TestCancelledCallsLeaveNoTransactionOpen(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	s, other := open(t, path, sqliteclaim.Options{}), open(t, path, sqliteclaim.Options{})
	all := ids(500)
	insert(t, s, "c", all...)
	cancelled := 0
	for i := range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*100)*time.Microsecond)
		_, err := s.Claim(ctx, all, lease(fmt.Sprint("h", i), 100*i+50, 100*i+100))
		if err != nil {
			require.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
			cancelled++
		}
		cancel()
		// Were a transaction of s still open, this would wait for it in vain.
		ctx, cancel = context.WithTimeout(t.Context(), 9*time.Second)
		require.NoError(t, other.Insert(ctx, call(fmt.Sprint("d", i)), []core.Task{{ID: core.ID(fmt.Sprint("x", i)), Due: noon}}))
		cancel()
	}
	t.Logf("%d of 100 calls were cancelled", cancelled)
	require.Positive(t, cancelled)
}

func TestHugeBatchesAreSplit(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	s := open(t, file(t), sqliteclaim.Options{})
	all := ids(4100) // three transactions
	insert(t, s, "c", all...)
	err := s.Insert(t.Context(), call("d"), []core.Task{{ID: "new", Due: noon}, {ID: all[4000], Due: noon}})
	require.ErrorIs(t, err, core.ErrExists)
	tasks := make([]core.Task, 3000)
	for i := range tasks {
		tasks[i] = core.Task{ID: core.ID(fmt.Sprint("n", i)), Due: noon}
	}
	tasks[2500].ID = all[7]
	var batch *core.BatchError
	require.ErrorAs(t, s.Insert(t.Context(), call("e"), tasks), &batch)
	require.Equal(t, []core.ItemError{{Index: 2500, ID: all[7], Err: core.ErrExists}}, batch.Items)
	grants := grant(t, s, lease("h", 1, 10), all...)
	require.NoError(t, s.Extend(t.Context(), grants, at(20)))
	settlements := make([]core.Settlement, len(grants))
	for i, g := range grants {
		settlements[i] = core.Settlement{Grant: g, Outcome: core.Done}
	}
	require.NoError(t, s.Settle(t.Context(), at(5), settlements))
	n, err := s.Purge(t.Context(), at(6), 4050)
	require.NoError(t, err)
	require.Equal(t, 4050, n)
}

func TestCancelFindsALeaseLiveToItsLastMillisecond(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for _, deleteFinished := range []bool{false, true} {
		s := open(t, file(t), sqliteclaim.Options{DeleteFinished: deleteFinished})
		insert(t, s, "c", "a", "b")
		grant(t, s, lease("h", 1, 10), "a", "b")
		fates, err := s.Cancel(t.Context(), core.Call{Now: at(10)}, []core.ID{"a"})
		require.NoError(t, err)
		require.Equal(t, []core.Fate{core.WasRunning}, fates)
		fates, err = s.Cancel(t.Context(), core.Call{Now: at(10).Add(time.Millisecond)}, []core.ID{"b"})
		require.NoError(t, err)
		require.Equal(t, []core.Fate{core.Cancelled}, fates)
	}
}

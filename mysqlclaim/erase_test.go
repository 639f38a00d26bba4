package mysqlclaim

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// done are settlements of all that was granted.
func done(claimed []core.Claimed) []core.Settlement {
	list := make([]core.Settlement, len(claimed))
	for i, c := range claimed {
		list[i] = core.Settlement{Grant: c.Grant, Outcome: core.Done}
	}
	return list
}

// Of a row that is missing afterwards nobody could say who deleted it.
func TestDeletingDoneTasksTellsThoseItDeletedFromThoseThatWereGone(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{DeleteFinished: true})
		insert(t, s, task("a"), task("gone"), task("locked"), task("z"))
		settlements := done(grant(t, s, leaseOf("h", base), "a", "gone", "locked", "z"))
		require.NoError(t, s.Settle(t.Context(), base, settlements[1:2]))

		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		unlock := lockRow(t, s, "locked")
		err := s.Settle(ctx, base, settlements)
		unlock()
		var batch *core.BatchError
		require.ErrorAs(t, err, &batch)
		require.Len(t, batch.Items, 2)
		assert.Equal(t, core.ID("gone"), batch.Items[0].ID)
		require.ErrorIs(t, batch.Items[0].Err, core.ErrLeaseLost)
		assert.Equal(t, core.ID("locked"), batch.Items[1].ID)
		require.ErrorIs(t, batch.Items[1].Err, core.ErrBusy)
		var left int
		require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+s.quoted).Scan(&left))
		assert.Equal(t, 1, left, "what could be deleted was")
		require.NoError(t, s.Settle(ctx, base, settlements[2:3]))
	})
}

// Grants of many calls, each of another token, don't fit into one condition.
func TestGrantsOfManyHoldersAreSettledInOneBatch(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		db := open(t, b.database(t), "")
		for name, options := range map[string]Options{"kept": {}, "deleted": {DeleteFinished: true}} {
			for _, n := range []int{2, maxFences, maxFences + 1} {
				options.Queue = fmt.Sprint(name, n)
				s := newStore(t, db, options)
				list := someTasks("n", n)
				insert(t, s, list...)
				var claimed []core.Claimed
				for i, v := range list {
					claimed = append(claimed, grant(t, s, leaseOf(fmt.Sprint("h", i), base), v.ID)...)
				}
				older := claimed[n-1]
				older.Grant.Holder = claimed[0].Grant.Holder
				var grants []core.Grant
				for _, c := range claimed {
					grants = append(grants, c.Grant)
				}
				require.NoError(t, s.Extend(t.Context(), grants, at(90_000)))
				grants[n-1] = older.Grant
				err := s.Extend(t.Context(), grants, at(95_000))
				lostLast(t, err, n)
				err = s.Settle(t.Context(), base, done(append(claimed[:n-1:n-1], older)))
				lostLast(t, err, n)
				require.NoError(t, s.Settle(t.Context(), base, done(claimed[n-1:])))
			}
		}
	})
}

// lostLast fails unless err says that the last of n items alone was another's.
func lostLast(t *testing.T, err error, n int) {
	t.Helper()
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	require.Len(t, batch.Items, 1)
	assert.Equal(t, n-1, batch.Items[0].Index)
	assert.ErrorIs(t, batch.Items[0].Err, core.ErrLeaseLost)
}

func TestAClaimFindsRoomForItsHolder(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		length := func() (n int) {
			require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT LENGTH(holder) FROM "+s.quoted).Scan(&n))
			return n
		}
		insert(t, s, task("a"))
		assert.Equal(t, len(blankHolder), length(), "a new row")
		claimed := grant(t, s, leaseOf("h", base), "a")
		require.NoError(t, s.Settle(t.Context(), base, done(claimed)))
		require.NoError(t, s.Insert(t.Context(), callNamed("again"), []core.Task{task("a")}))
		assert.Equal(t, len(blankHolder), length(), "a row that is used again")
		var shown string
		require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT holder FROM dueclaim_tasks_view").Scan(&shown))
		assert.Empty(t, shown, "in the view")
	})
}

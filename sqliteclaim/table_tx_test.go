package sqliteclaim_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// shop opens the recipe's table with a table for effects.
func shop(t *testing.T, def claim.Table, ids ...string) *sqliteclaim.Table {
	t.Helper()
	table, err := sqliteclaim.OpenTable(t.Context(), file(t), def)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, table.Close()) })
	execute(t, table.DB(), recipeSQL, "CREATE TABLE effects (name TEXT PRIMARY KEY)")
	for _, id := range ids {
		execute(t, table.DB(), "INSERT INTO orders (order_id, created_at) VALUES ('"+id+"', '2020-01-01 11:00:00')")
	}
	return table
}

func TestTableSettlesInTheUsersTransaction(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	table := shop(t, recipe(), "a", "b", "paid")
	got, err := table.Claim(t.Context(), []core.ID{"a", "b", "paid"}, lease("h", 0, 30))
	require.NoError(t, err)
	done := func(c core.Claimed) core.Settlement { return core.Settlement{Grant: c.Grant, Outcome: core.Done} }
	inTx := func(commit bool, name string, settlements ...core.Settlement) error {
		tx, err := table.DB().BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		_, err = tx.ExecContext(t.Context(), "INSERT INTO effects VALUES (?)", name)
		require.NoError(t, err)
		err = table.SettleTx(t.Context(), tx, at(1), settlements)
		if commit && err == nil {
			require.NoError(t, tx.Commit())
		}
		return err
	}
	state := func() []string {
		return column(t, table.DB(), "SELECT order_id || ' ' || status FROM orders ORDER BY 1")
	}
	require.NoError(t, inTx(false, "rolled back", done(got[0])))
	require.Equal(t, []string{"a processing", "b processing", "paid processing"}, state())
	require.NoError(t, inTx(true, "a", done(got[0])))
	execute(t, table.DB(), "UPDATE orders SET status = 'completed', updated_at = datetime('now') WHERE order_id = 'paid'")
	err = inTx(true, "x", core.Settlement{}, done(got[1]), done(got[2]), done(got[1]))
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	require.Len(t, batch.Items, 3)
	for i, want := range []struct {
		index int
		err   error
	}{{0, core.ErrInvalid}, {2, core.ErrLeaseLost}, {3, core.ErrInvalid}} {
		require.Equal(t, want.index, batch.Items[i].Index)
		require.ErrorIs(t, batch.Items[i].Err, want.err)
	}
	require.Equal(t, []string{"a cancelled", "b processing", "paid completed"}, state(), "the user's transaction was rolled back")
	require.NoError(t, inTx(true, "b", done(got[1])))
	// The handler runs again, as the reply to its COMMIT was lost.
	for _, c := range got[:2] {
		require.ErrorIs(t, inTx(true, "again", done(c)), core.ErrLeaseLost)
		require.NoError(t, table.Settle(t.Context(), at(1), []core.Settlement{done(c)}), "a repeat by Settle")
	}
	require.Equal(t, []string{"a cancelled", "b cancelled", "paid completed"}, state())
	require.Equal(t, []string{"a", "b"}, column(t, table.DB(), "SELECT name FROM effects ORDER BY name"))
}

func TestSettleTxIsNotForModeTransition(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	table := shop(t, transition(), "a")
	tx, err := table.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	err = table.SettleTx(t.Context(), tx, at(1), []core.Settlement{{Grant: core.Grant{ID: "a", Token: 1, Holder: "h"}, Outcome: core.Done}})
	require.ErrorIs(t, err, core.ErrInvalid)
	require.ErrorContains(t, err, "make the step with Transition")
}

func TestTransitionIsTheTablesOwnTransaction(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	table := shop(t, transition(), "a", "b", "late")
	execute(t, table.DB(), "UPDATE orders SET created_at = '2099-01-01 11:30:01' WHERE order_id = 'late'")
	job := func(id core.ID) *core.Job {
		return &core.Job{Task: core.Task{ID: id}, Grant: core.Grant{ID: id, Token: noon.UnixMilli(), Holder: "h"}}
	}
	calls := 0
	write := func(tx *sql.Tx) error {
		calls++
		_, err := tx.ExecContext(t.Context(), "INSERT INTO effects VALUES (?)", calls)
		return err
	}
	for range 2 {
		require.NoError(t, table.Transition(t.Context(), job("a"), write))
	}
	require.NoError(t, table.Transition(t.Context(), job("late"), write), "put off meanwhile")
	require.NoError(t, table.Transition(t.Context(), job("deleted"), write))
	require.Equal(t, 1, calls, "the step is made once")
	no := errors.New("no")
	require.ErrorIs(t, table.Transition(t.Context(), job("b"), func(tx *sql.Tx) error {
		require.NoError(t, write(tx))
		return no
	}), no)
	require.Equal(t, []string{"a cancelled", "b pending", "late pending"}, column(t, table.DB(), "SELECT order_id || ' ' || status FROM orders ORDER BY 1"))
	require.Equal(t, []string{"1"}, column(t, table.DB(), "SELECT name FROM effects"))

	err := table.Transition(t.Context(), nil, write)
	require.ErrorIs(t, err, core.ErrInvalid)
	require.ErrorContains(t, err, "sqliteclaim: table orders: transition: ")
	require.ErrorIs(t, shop(t, recipe()).Transition(t.Context(), job("a"), write), core.ErrInvalid, "another mode")
}

// What another one has written and not yet committed decides whether there is a
// step to make.
func TestTransitionWaitsForOtherWriters(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	table := shop(t, transition(), "a")
	tx, err := table.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "UPDATE orders SET status = 'completed' WHERE order_id = 'a'")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- table.Transition(t.Context(), &core.Job{Task: core.Task{ID: "a"}, Grant: core.Grant{ID: "a", Token: noon.UnixMilli()}}, func(*sql.Tx) error {
			return errors.New("the row was paid")
		})
	}()
	select {
	case err := <-ended:
		t.Fatalf("ended before the other one: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, tx.Commit())
	require.NoError(t, <-ended)
}

func TestTableSaysWhatIsMissing(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	table, err := sqliteclaim.OpenTable(t.Context(), file(t), recipe())
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	_, err = table.Claim(t.Context(), []core.ID{"a"}, lease("h", 0, 30))
	require.ErrorContains(t, err, "sqliteclaim: table orders: claim: ")
	require.ErrorContains(t, err, "no such table: orders")
	_, err = sqliteclaim.OpenTable(t.Context(), ":memory:", recipe())
	require.ErrorContains(t, err, `sqliteclaim: open table ":memory:": `)
	require.ErrorIs(t, err, core.ErrInvalid)
}

// Tokens go on rising while the clock is set back; a claim is late or in time by the clock
// alone, else none would be done until it is where it was.
func TestTableClaimsWhileTheClockIsSetBack(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	table := shop(t, recipe(), "a")
	sqliteclaim.SetBack(time.Hour)
	l := lease("h", 0, 30)
	l.By = time.Now().Add(time.Minute)
	claimed, err := table.Claim(t.Context(), []core.ID{"a"}, l)
	require.NoError(t, err)
	require.Equal(t, core.Granted, claimed[0].Verdict)
}

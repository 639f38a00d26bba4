package mysqlclaim

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func TestErrorsOfATableSayWhatIsWrong(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		table := newTable(t, f.db, smallDef("later", claim.IntegerID))
		claimIt := func() error {
			_, err := table.Claim(t.Context(), []core.ID{"1"}, leaseOf("h", base))
			return err
		}
		err := claimIt()
		var driver *mysql.MySQLError
		require.True(t, errors.As(err, &driver), "%v", err)
		assert.ErrorContains(t, err, "mysqlclaim: claim: table later is not as it is mapped, Verify says how: ")

		f.make(t, smallTable, "later", "$type", "INT")
		f.exec(t, "INSERT INTO later (id) VALUES (1)")
		require.NoError(t, claimIt(), "nothing was remembered of a table that was missing")
		f.exec(t, "ALTER TABLE later RENAME INDEX id TO other")
		require.Error(t, claimIt(), "an index that was forced is gone")
		require.NoError(t, claimIt(), "and what was known of it")
		f.exec(t, "ALTER TABLE later DROP COLUMN failure")
		got, err := table.Claim(t.Context(), []core.ID{"1"}, leaseOf("h", base))
		require.NoError(t, err)
		err = table.Settle(t.Context(), at(1), []core.Settlement{{Grant: got[0].Grant, Outcome: core.Retry, Due: at(2), Err: "e"}})
		assert.ErrorContains(t, err, "Verify says how")
		assert.Nil(t, table.known.Load())
	})
}

// A TIMESTAMP is an instant, whatever clocks show: here the hour that Berlin's
// show twice, in a session whose zone the server knows by its offset only.
func TestTimestampsAreInstants(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.exec(t, "CREATE TABLE stamps (id INT PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'new', due TIMESTAMP(3) NULL, token BIGINT, holder VARCHAR(64), lease TIMESTAMP(6) NULL, KEY (state, due))")
		def := smallDef("stamps", claim.IntegerID)
		def.LastError, def.Due = "", claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.Timestamp, Digits: 3}}
		def.Lease = claim.TimeColumn{Name: "lease", Kind: claim.Timestamp, Digits: 6}
		def.State.Done = claim.Text("done")
		for i, options := range []string{"", "time_zone=%27-09%3A30%27&parseTime=true&loc=Asia%2FShanghai", "time_zone=%27%2B13%3A00%27"} {
			table := newTable(t, open(t, f.dsn, options), def)
			id := core.ID(rune('1' + i))
			due := time.Date(2030, 10, 27, 0, 30, 0, 678_000_000, time.UTC)
			utc := open(t, f.dsn, "time_zone=%27%2B00%3A00%27")
			_, err := utc.ExecContext(t.Context(), "INSERT INTO stamps (id, due) VALUES (?, ?)", string(id), due.Format("2006-01-02 15:04:05.000"))
			require.NoError(t, err)
			list, err := table.Waiting(t.Context(), due, core.Entry{}, endOfTime, 10)
			require.NoError(t, err)
			require.Equal(t, []core.Entry{{ID: id, Due: due}}, list, options)
			list, err = table.Waiting(t.Context(), due, list[0], endOfTime, 10)
			require.NoError(t, err)
			require.Empty(t, list, "behind the cursor")
			list, err = table.Waiting(t.Context(), due, core.Entry{}, due, 10)
			require.NoError(t, err)
			require.Empty(t, list, "the bound is strict")
			claimAt := func(now time.Time) core.Claimed {
				got, err := table.Claim(t.Context(), []core.ID{id}, leaseOf("h", now))
				require.NoError(t, err)
				return got[0]
			}
			require.Equal(t, core.NotDue, claimAt(due.Add(-time.Millisecond)).Verdict)
			got := claimAt(due)
			require.Equal(t, core.Granted, got.Verdict)
			assert.Equal(t, due.Add(30*time.Second), got.At)
			var lease string
			require.NoError(t, utc.QueryRowContext(t.Context(), "SELECT CAST(lease AS CHAR) FROM stamps WHERE id = ?", string(id)).Scan(&lease))
			assert.Equal(t, "2030-10-27 00:30:30.678000", lease)
			far := core.Settlement{Grant: got.Grant, Outcome: core.Retry, Due: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), Err: "e"}
			require.ErrorContains(t, table.Settle(t.Context(), due, []core.Settlement{far}), "a TIMESTAMP ends at ")
			require.NoError(t, table.Settle(t.Context(), due, []core.Settlement{{Grant: got.Grant, Outcome: core.Done}}))
		}
	})
}

// A statement of one row that lost a deadlock changed nothing, which is known.
func TestALostDeadlockOfOneItemIsNoUnknownOutcome(t *testing.T) {
	items, err := eachItem(nil, 4, nil)
	require.NoError(t, err)
	require.Empty(t, items)
	assert.True(t, mustRollBack(&mysql.MySQLError{Number: errDeadlock}))
	assert.False(t, mustRollBack(mysql.ErrInvalidConn))
	assert.False(t, mustRollBack(nil))
}

func TestATableTellsTheServersTime(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		before := time.Now().Add(-5 * time.Second)
		now, err := newTable(t, open(t, f.dsn, "time_zone=%27%2B08%3A00%27"), recipeDef("orders")).Now(t.Context())
		require.NoError(t, err)
		assert.WithinRange(t, now, before, time.Now().Add(5*time.Second))
	})
}

// With one connection a transaction would wait for a second one for ever.
func TestSettleTxNeedsNoSecondConnection(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		first := f.small(t, "lone", "INT", claim.IntegerID, "1")
		got, err := first.Claim(t.Context(), []core.ID{"1"}, leaseOf("h", base))
		require.NoError(t, err)
		db := open(t, f.dsn, "")
		db.SetMaxOpenConns(1)
		table := newTable(t, db, first.def)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		tx, err := db.BeginTx(ctx, &sql.TxOptions{})
		require.NoError(t, err)
		require.NoError(t, table.SettleTx(ctx, tx, at(1), []core.Settlement{{Grant: got[0].Grant, Outcome: core.Done}}))
		require.NoError(t, tx.Commit())
	})
}

package sqlmocked_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/sqlmocked"
)

type steps = []conformance.SQLStep

func asks(text string, args ...driver.Value) conformance.SQLStep {
	return conformance.SQLStep{Do: conformance.SQLExec, Text: text, Args: args, Affected: 1}
}

// run sends statements one after the other; their errors are passed over, as a
// careless store does.
func run(t *testing.T, db *sql.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, _ = db.ExecContext(t.Context(), text)
	}
}

func TestWhatIsAskedMustBeTheScript(t *testing.T) {
	for name, c := range map[string]struct {
		script steps
		asked  []string
		want   string // of the error, "": none
	}{
		"the same, white space aside": {steps{asks("DELETE FROM a\n\tWHERE b")}, []string{"DELETE  FROM a WHERE b"}, ""},
		"nothing expected or asked":   {nil, nil, ""},
		"another text":                {steps{asks("DELETE FROM a WHERE id = 1")}, []string{"DELETE FROM a"}, "they part at byte 13"},
		"one missing":                 {steps{asks("A"), asks("B")}, []string{"A"}, "after 1 of 2 steps nothing more was asked; next in the script: exec B"},
		"one too many, error ignored": {steps{asks("A")}, []string{"A", "B"}, "step 2: "},
		"another order":               {steps{asks("A"), asks("B")}, []string{"B", "A"}, "step 1: "},
		"an argument too few":         {steps{asks("A", 1)}, []string{"A"}, "expected 1, but got 0 arguments"},
		"anything, each time":         {steps{asks("A ‹any›"), asks("B ‹any›")}, []string{"A 1", "B 2"}, ""},
		"the same made-up value":      {steps{asks("A '‹id›' ‹id›"), asks("B ‹id›")}, []string{"A '7' 7", "B 7"}, ""},
		"another made-up value":       {steps{asks("A ‹id›"), asks("B ‹id›")}, []string{"A 7", "B 8"}, "‹id› was 7 before and is 8 now"},
	} {
		t.Run(name, func(t *testing.T) {
			play := sqlmocked.Play(t, c.script)
			run(t, play.DB(), c.asked...)
			assert.Equal(t, len(c.asked), play.Asked())
			if c.want == "" {
				assert.NoError(t, play.Err())
			} else {
				assert.ErrorContains(t, play.Err(), c.want)
			}
		})
	}
}

func TestArgumentsAreComparedByTypeAndValue(t *testing.T) {
	for name, c := range map[string]struct {
		want, got driver.Value
		ok        bool
	}{
		"an int stands for an int64":      {7, int64(7), true},
		"a number isn't its text":         {7, "7", false},
		"slices":                          {[]int64{1, 2}, []int64{1, 2}, true},
		"another order":                   {[]int64{1, 2}, []int64{2, 1}, false},
		"nil isn't empty":                 {[]byte{}, nil, false},
		"a made-up value":                 {"‹x›", int64(7), true},
		"a made-up value in a slice":      {[]string{"a", "‹x›"}, []string{"a", "b"}, true},
		"beside another one than said so": {[]string{"a", "‹x›"}, []string{"b", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			play := sqlmocked.Play(t, steps{asks("A", c.want)})
			_, err := play.DB().ExecContext(t.Context(), "A", c.got)
			assert.Equal(t, c.ok, err == nil, "%v", err)
			assert.Equal(t, c.ok, play.Err() == nil, "%v", play.Err())
		})
	}
}

func TestWithoutArgumentsMeansNone(t *testing.T) {
	for _, do := range []conformance.SQLAction{conformance.SQLExec, conformance.SQLQuery} {
		play := sqlmocked.Play(t, steps{{Do: do, Text: "A"}})
		if do == conformance.SQLExec {
			_, _ = play.DB().ExecContext(t.Context(), "A", 7)
		} else {
			_, _ = play.DB().QueryContext(t.Context(), "A", 7)
		}
		assert.ErrorContains(t, play.Err(), "expected 0, but got 1 arguments", do)
	}
}

// A reply has the value that was made up before, and an error behind the rows
// comes when the last one was read.
func TestReplies(t *testing.T) {
	lost := errors.New("connection lost")
	play := sqlmocked.Play(t, steps{
		asks("A ‹id›"),
		{Do: conformance.SQLQuery, Text: "B", Rows: [][]driver.Value{{"‹id›", 1}, {"y", nil}}, Err: lost, AfterRows: true},
	})
	run(t, play.DB(), "A 7")
	rows, err := play.DB().QueryContext(t.Context(), "B")
	require.NoError(t, err)
	var ids []string
	for rows.Next() {
		var id string
		var n sql.NullInt64
		require.NoError(t, rows.Scan(&id, &n))
		ids = append(ids, id)
	}
	assert.Equal(t, []string{"7", "y"}, ids)
	require.ErrorIs(t, rows.Err(), lost)
	assert.NoError(t, play.Err())
}

// database/sql tries three connections, and then gives up.
func TestABadConnectionIsReplaced(t *testing.T) {
	bad := asks("A")
	bad.Err = driver.ErrBadConn
	play := sqlmocked.Play(t, steps{bad, bad, bad, asks("A")})
	_, err := play.DB().ExecContext(t.Context(), "A")
	require.ErrorIs(t, err, driver.ErrBadConn)
	_, err = play.DB().ExecContext(t.Context(), "A")
	require.NoError(t, err)
	assert.NoError(t, play.Err())
}

func TestATransactionIsAskedStepByStep(t *testing.T) {
	failed := errors.New("commit failed")
	play := sqlmocked.Play(t, steps{
		{Do: conformance.SQLBegin}, {Do: conformance.SQLRollback},
		{Do: conformance.SQLBegin}, {Do: conformance.SQLCommit, Err: failed},
	})
	tx, err := play.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	tx, err = play.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.ErrorIs(t, tx.Commit(), failed)
	assert.NoError(t, play.Err())
}

func TestPreparedStatementsAreRefused(t *testing.T) {
	play := sqlmocked.Play(t, nil)
	_, err := play.DB().PrepareContext(t.Context(), "A")
	require.ErrorContains(t, err, "prepared statements can't be scripted")
	assert.ErrorContains(t, play.Err(), "prepared statements can't be scripted")
}

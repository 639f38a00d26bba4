package tabletest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Handle is a table of a Config in a database, with a shop's rows in it.
type Handle struct {
	core.Claimer
	Name string // of the table, as SQL has it
	// Exec runs a statement of the user's and returns how many rows it changed; Text
	// reads one value as text, "" for Null and for no row.
	Exec func(t *testing.T, query string) int64
	Text func(t *testing.T, query string) string
	// Put inserts rows for tasks, into the handle's own shop.
	Put func(t *testing.T, tasks ...core.Task)
	// Literal writes a value of a time column.
	Literal func(column claim.TimeColumn, value int64) string
	// SettleTx settles in a transaction of its own, which is committed where it succeeds.
	SettleTx func(t *testing.T, now time.Time, s ...core.Settlement) error
	// Touch makes a trigger: who updates a row writes this value of updated_at.
	Touch func(t *testing.T, literal string)
	// FitErrors has last_error refuse a text of more characters.
	FitErrors func(t *testing.T, chars int)
	// Transition is the table's own; f's exec runs in its transaction.
	Transition func(ctx context.Context, job *core.Job, f func(exec func(query string) error) error) error
}

// base is the time at which all begins.
var base = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }

func (h Handle) update(t *testing.T, id, set string) {
	t.Helper()
	require.EqualValues(t, 1, h.Exec(t, "UPDATE "+h.Name+" SET "+set+" WHERE order_id = '"+id+"'"), "rows that the user's statement changed")
}

func (h Handle) read(t *testing.T, id, column string) string {
	t.Helper()
	return h.Text(t, "SELECT "+column+" FROM "+h.Name+" WHERE order_id = '"+id+"'")
}

// lease asks for what is due at now, for LeaseFor.
func lease(holder string, now time.Time) core.Lease {
	return core.Lease{Holder: holder, Now: now, DueBy: now, Until: now.Add(LeaseFor)}
}

func (h Handle) claim(t *testing.T, l core.Lease, id core.ID) core.Claimed {
	t.Helper()
	got, err := h.Claim(t.Context(), []core.ID{id}, l)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func (h Handle) want(t *testing.T, verdict core.Verdict, l core.Lease, id core.ID) core.Claimed {
	t.Helper()
	c := h.claim(t, l, id)
	require.Equal(t, verdict.String(), c.Verdict.String(), "verdict for %q (At %s, Err %v)", id, c.At, c.Err)
	return c
}

// wantWaiting fails unless just these wait at now.
func (h Handle) wantWaiting(t *testing.T, now time.Time, want ...core.Entry) {
	t.Helper()
	got, err := h.Waiting(t.Context(), now, core.Entry{}, base.Add(1000*time.Hour), 100)
	require.NoError(t, err)
	assert.Equal(t, append([]core.Entry{}, want...), append([]core.Entry{}, got...), "rows that wait")
}

// lost fails unless err says that the first item's lease is lost.
func lost(t *testing.T, err error, about string) {
	t.Helper()
	require.ErrorIs(t, err, core.ErrLeaseLost, about)
}

func settle(c core.Claimed, outcome core.Outcome, due time.Time) []core.Settlement {
	return []core.Settlement{{Grant: c.Grant, Outcome: outcome, Due: due, Err: "failed"}}
}

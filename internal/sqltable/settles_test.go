package sqltable

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// locked is a Conn on one row in a state, which somebody has locked.
type locked struct{ state string }

func (l locked) Query(_ context.Context, q Query, row func(Row)) error {
	r := make(Row, len(q.Out))
	r[0].Text, r[1].Text = "1", l.state
	row(r)
	return nil
}

func (locked) Change(_ context.Context, c Change) (Changes, error) {
	return Changes{Changed: make([]bool, len(c.Items))}, nil
}

// Else the index would drop the row as dead, and a sweep would find it pending,
// its failures forgotten.
func TestATaskIsDeadOnlyWhereItsRowSaysSo(t *testing.T) {
	e := New(claim.Table{
		Name: "orders", ID: claim.IDColumn{Name: "id"},
		State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Done: claim.Text("done"), Dead: claim.Text("dead")},
	}, Limits{Rows: 10, Bytes: 1000})
	dead := []core.Settlement{{Grant: core.Grant{ID: "1"}, Outcome: core.DeadLetter}}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	require.ErrorIs(t, e.Settle(t.Context(), locked{"new"}, now, dead), core.ErrBusy)
	for _, state := range []string{"dead", "done", "paid"} {
		require.NoError(t, e.Settle(t.Context(), locked{state}, now, dead), "%s: there is nothing left to do", state)
	}
}

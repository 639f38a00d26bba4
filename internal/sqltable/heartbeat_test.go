package sqltable

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// oneRow is a Conn on a row of mode StatusUpdated. Before it makes a change something
// else may happen.
type oneRow struct {
	state   string
	updated int64
	before  func()
}

func (o *oneRow) Query(_ context.Context, q Query, row func(Row)) error {
	r := make(Row, len(q.Out))
	r[0].Text, r[1].Text, r[2].Int, r[3].Int = "1", o.state, 1, o.updated
	row(r)
	return nil
}

func (o *oneRow) Change(_ context.Context, c Change) (Changes, error) {
	if f := o.before; f != nil {
		o.before = nil
		f()
	}
	done := Changes{Changed: make([]bool, len(c.Items))}
	for i, it := range c.Items {
		if o.state != "in hand" || it.Fence != o.updated {
			continue
		}
		done.Changed[i] = true
		for _, a := range c.Set {
			switch to := a.To[0].(type) {
			case Value:
				o.state = to.V.Text()
			case Time:
				o.updated = to.N
			case ItemField:
				o.updated = it.Integer(Field(to))
			}
		}
	}
	return done, nil
}

// The only holder is told so, whatever its heartbeats do while it settles.
func TestAHeartbeatDoesNotCostItsOwnSettlement(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	start := func(t *testing.T) (*Engine, *oneRow, core.Grant) {
		e := New(claim.Table{
			Name: "orders", ID: claim.IDColumn{Name: "id"},
			State:   claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("in hand"), Done: claim.Text("done")},
			Due:     claim.DueTime{Base: claim.TimeColumn{Name: "created"}},
			Updated: claim.TimeColumn{Name: "updated"}, LeaseFor: 30 * time.Second,
		}, Limits{Rows: 10, Bytes: 1000})
		row := &oneRow{state: "in hand", updated: now.UnixMilli()}
		return e, row, core.Grant{ID: "1", Token: now.UnixMilli(), Holder: "h"}
	}
	done := func(g core.Grant) []core.Settlement {
		return []core.Settlement{{Grant: g, Outcome: core.Done}}
	}
	settle := map[string]func(*Engine, context.Context, Conn, time.Time, []core.Settlement) error{"Settle": (*Engine).Settle, "SettleTx": (*Engine).SettleTx}
	for name, call := range settle {
		t.Run(name, func(t *testing.T) {
			e, row, g := start(t)
			row.before = func() {
				require.NoError(t, e.Extend(t.Context(), row, []core.Grant{g}, now.Add(40*time.Second)))
			}
			require.NoError(t, call(e, t.Context(), row, now.Add(time.Second), done(g)))
			assert.Equal(t, "done", row.state)
		})
	}
	t.Run("a row that somebody has locked is busy, at the first look", func(t *testing.T) {
		e, row, g := start(t)
		changes := 0
		require.ErrorIs(t, e.Settle(t.Context(), stuck{row, &changes}, now, done(g)), core.ErrBusy)
		assert.Equal(t, 1, changes)
	})
	t.Run("a heartbeat that finds the row settled leaves the settlement's repeat a success", func(t *testing.T) {
		e, row, g := start(t)
		require.NoError(t, e.Settle(t.Context(), row, now.Add(time.Second), done(g)))
		require.ErrorIs(t, e.Extend(t.Context(), row, []core.Grant{g}, now.Add(40*time.Second)), core.ErrLeaseLost)
		require.NoError(t, e.Settle(t.Context(), row, now.Add(time.Second), done(g)))
	})
}

// stuck is a Conn whose row somebody has locked.
type stuck struct {
	*oneRow
	changes *int
}

func (s stuck) Change(_ context.Context, c Change) (Changes, error) {
	*s.changes++
	return Changes{Changed: make([]bool, len(c.Items))}, nil
}

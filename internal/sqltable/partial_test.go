package sqltable

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

var shop = claim.Table{
	Name: "orders", ID: claim.IDColumn{Name: "id"},
	State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("in hand"), Done: claim.Text("done")},
	Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due"}},
	Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease"},
}

type refusal struct{}

func (refusal) Error() string { return "the server is read-only" }

// refusing is a Conn whose server takes so many changes and then no more.
type refusing struct{ takes int }

func (*refusing) Query(context.Context, Query, func(Row)) error { return nil }

func (r *refusing) Change(_ context.Context, c Change) (Changes, error) {
	if r.takes--; r.takes < 0 {
		return Changes{}, fmt.Errorf("%w: %w", core.ErrNotDone, refusal{})
	}
	done := Changes{Changed: make([]bool, len(c.Items))}
	for i := range done.Changed {
		done.Changed[i] = true
	}
	return done, nil
}

// Of a call of several statements one of which took effect nothing is proven by another
// that didn't.
func TestACallIsNotDoneOnlyWhereNoneOfItsStatementsWas(t *testing.T) {
	e := New(shop, Limits{Rows: 1, Bytes: 1000})
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	grants := []core.Grant{{ID: "1", Token: 1, Holder: "h"}, {ID: "2", Token: 1, Holder: "h"}}
	for name, call := range map[string]func(Conn) error{
		"Extend": func(c Conn) error { return e.Extend(t.Context(), c, grants, now) },
		"Settle": func(c Conn) error {
			return e.Settle(t.Context(), c, now, []core.Settlement{{Grant: grants[0], Outcome: core.Done}, {Grant: grants[1], Outcome: core.Done}})
		},
	} {
		require.ErrorIs(t, call(&refusing{takes: 0}), core.ErrNotDone, name)
		err := call(&refusing{takes: 1})
		require.NotErrorIs(t, err, core.ErrNotDone, name)
		assert.ErrorAs(t, err, new(refusal), name)
	}
}

// forgetful is a Conn whose first change writes to a row that doesn't keep it, and whose
// server comes to the other rows late.
type forgetful struct {
	changes int
	clock   int64
}

func (f *forgetful) row(id string, outs []Out) Row {
	row := make(Row, len(outs))
	for i, o := range outs {
		switch o.As {
		case AsID:
			row[i].Text = id
		case AsInt:
			row[i].Int = f.clock
		default:
			row[i].Text = "new"
		}
	}
	return row
}

func (f *forgetful) Query(_ context.Context, q Query, row func(Row)) error {
	row(f.row("2", q.Out))
	return nil
}

func (f *forgetful) Change(_ context.Context, c Change) (Changes, error) {
	if f.changes++; f.changes > 1 {
		return Changes{Changed: make([]bool, 1)}, nil
	}
	return Changes{Changed: []bool{true}, Rows: map[int]Row{0: f.row("1", c.Returning)}}, nil
}

func TestAClaimThatChangedARowWasDone(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	lease := core.Lease{Holder: "h", Now: now, DueBy: now, Until: now.Add(time.Minute), By: now}
	late := now.Add(time.Second).UnixMicro()
	_, err := New(shop, Limits{Rows: 1, Bytes: 1000}).Claim(t.Context(), &forgetful{clock: late, changes: 1}, []core.ID{"2"}, lease)
	require.ErrorIs(t, err, core.ErrNotDone)
	claimed, err := New(shop, Limits{Rows: 1, Bytes: 1000}).Claim(t.Context(), &forgetful{clock: late}, []core.ID{"1", "2"}, lease)
	require.NoError(t, err)
	for _, c := range claimed {
		assert.Equal(t, core.Refused, c.Verdict, c.ID)
	}
}

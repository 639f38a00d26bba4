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
	e := New(claim.Table{
		Name: "orders", ID: claim.IDColumn{Name: "id"},
		State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("in hand"), Done: claim.Text("done")},
		Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due"}},
		Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease"},
	}, Limits{Rows: 1, Bytes: 1000})
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

package tabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// TestFences runs what two claims of one row, in mode StatusUpdated, may write in one step
// of time. TestUsers has it for columns that keep milliseconds; run it also for finer
// ones, where the step is that of core's times.
func TestFences(t *testing.T, c Config, open func(t *testing.T, first *Handle, shop string) Handle) {
	t.Helper()
	testFences(t, c, func(name string, f func(t *testing.T, h Handle)) {
		t.Run(name, func(t *testing.T) { f(t, open(t, nil, "a")) })
	}, core.Task{ID: "1", Due: base})
}

func testFences(t *testing.T, c Config, run func(name string, f func(t *testing.T, h Handle)), one core.Task) {
	t.Helper()
	column := c.Table("orders", "a").Updated
	within := func(us int) time.Time { return at(1000).Add(time.Duration(us) * time.Microsecond) }
	// leaseAt is a lease as core asks for one: from then on, in whole milliseconds.
	leaseAt := func(holder string, now time.Time) core.Lease {
		l := lease(holder, core.FloorMilli(now))
		l.Until = core.CeilMilli(now.Add(LeaseFor))
		return l
	}
	run("who puts a row back by NOW(), which rounds down, doesn't make two holders of one fence", func(t *testing.T, h Handle) {
		h.Put(t, one)
		a := h.want(t, core.Granted, leaseAt("a", within(100)), "1")
		h.update(t, "1", "status = 'pending', updated_at = "+h.Literal(column, column.AtMost(within(300))))
		next := h.want(t, core.NotDue, leaseAt("b", within(500)), "1").At
		assert.WithinDuration(t, within(500), next, 3*time.Millisecond)
		b := h.want(t, core.Granted, leaseAt("b", next), "1")
		assert.Greater(t, b.Grant.Token, a.Grant.Token)
		lost(t, h.Extend(t.Context(), []core.Grant{a.Grant}, at(60_000)), "Extend")
		lost(t, h.Settle(t.Context(), next, settle(a, core.Done, time.Time{})), "Settle")
		require.NoError(t, h.Settle(t.Context(), next, settle(b, core.Done, time.Time{})))
	})
	run("a row is not claimed in the very moment of its last change", func(t *testing.T, h Handle) {
		h.Put(t, one)
		c := h.want(t, core.Granted, lease("a", at(1000)), "1")
		require.NoError(t, h.Settle(t.Context(), at(1000), settle(c, core.Released, at(1000))))
		next := h.want(t, core.NotDue, lease("b", at(1000)), "1").At
		assert.WithinDuration(t, at(1002), next, time.Millisecond)
		got := h.want(t, core.Granted, lease("b", next), "1")
		assert.Greater(t, got.Grant.Token, c.Grant.Token)
	})
	run("who gets no grant by a column that doesn't keep the fence leaves the row pending", func(t *testing.T, h Handle) {
		two := core.Task{ID: "2", Due: base}
		h.Put(t, one, two)
		h.Touch(t, h.Literal(column, column.AtMost(at(-60_000))))
		for range 2 {
			got, err := h.Claim(t.Context(), []core.ID{"1", "2"}, lease("a", at(1000)))
			require.NoError(t, err)
			for _, c := range got {
				require.Equal(t, core.Refused.String(), c.Verdict.String())
				require.ErrorContains(t, c.Err, "updated_at doesn't keep what a claim writes")
				require.ErrorContains(t, c.Err, "trigger")
			}
			assert.Equal(t, []string{Pending, "0", Pending, "0"}, []string{
				h.read(t, "1", "status"), h.read(t, "1", "attempts"), h.read(t, "2", "status"), h.read(t, "2", "attempts"),
			})
		}
	})
}

// Finer is the mode StatusUpdated on columns that keep so many digits.
func Finer(native claim.TimeColumn, digits int) Config {
	native.Digits = digits
	for _, c := range Configs(native) {
		if c.Name == "StatusUpdated" {
			return c
		}
	}
	panic("there is no such mode")
}

package tabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// TestUsers runs what the suite can't: that the user's own statements stay master
// of the rows, and what the weaker modes promise instead of what they don't. open
// makes an empty table, or one more handle on the table of first for another
// shop.
func TestUsers(t *testing.T, c Config, open func(t *testing.T, first *Handle, shop string) Handle) {
	t.Helper()
	mode := c.Table("orders", "shop").Mode()
	run := func(name string, f func(t *testing.T, h Handle)) {
		t.Run(name, func(t *testing.T) { f(t, open(t, nil, "a")) })
	}
	one := core.Task{ID: "1", Due: base}

	run("a row that was paid or deleted is gone", func(t *testing.T, h Handle) {
		h.Put(t, one, core.Task{ID: "2", Due: base})
		h.update(t, "1", "status = 'paid'")
		h.Exec(t, "DELETE FROM "+h.Name+" WHERE order_id = '2'")
		h.want(t, core.Gone, lease("h", base), "1")
		h.want(t, core.Gone, lease("h", base), "2")
		assert.Equal(t, "paid", h.read(t, "1", "status"))
		h.wantWaiting(t, base)
	})
	run("a row that is deleted by a time in deleted_at is not there", func(t *testing.T, h Handle) {
		h.Put(t, one, core.Task{ID: "2", Due: base})
		c := h.want(t, core.Granted, lease("h", base), "1")
		h.update(t, "1", "deleted_at = '2030-01-01'")
		h.update(t, "2", "deleted_at = '2030-01-01'")
		h.want(t, core.Gone, lease("h", base.Add(2*LeaseFor)), "2")
		h.wantWaiting(t, base.Add(2*LeaseFor))
		lost(t, h.Extend(t.Context(), []core.Grant{c.Grant}, at(60_000)), "Extend")
		if mode != claim.Transition {
			lost(t, h.Settle(t.Context(), at(1), settle(c, core.Done, time.Time{})), "Settle")
		}
		h.update(t, "2", "deleted_at = NULL")
		h.want(t, core.Granted, lease("h", base), "2")
	})
	run("a row that was put off is not due", func(t *testing.T, h Handle) {
		h.Put(t, one)
		due, after := c.Table("orders", "a").Due.Source()
		h.update(t, "1", due.Name+" = "+h.Literal(due, due.AtLeast(at(5000).Add(-after))))
		assert.Equal(t, at(5000), h.want(t, core.NotDue, lease("h", at(4999)), "1").At)
		h.wantWaiting(t, base, core.Entry{ID: "1", Due: at(5000)})
		h.want(t, core.Granted, lease("h", at(5000)), "1")
	})
	run("a row without a due time is never due", func(t *testing.T, h Handle) {
		h.Put(t, one)
		due, _ := c.Table("orders", "a").Due.Source()
		h.update(t, "1", due.Name+" = NULL")
		h.want(t, core.Gone, lease("h", base), "1")
		h.wantWaiting(t, base)
	})
	run("a row of another shop is not there", func(t *testing.T, h Handle) {
		other := open(t, &h, "b")
		h.Put(t, one)
		other.want(t, core.Gone, lease("h", base), "1")
		other.wantWaiting(t, base)
		c := h.want(t, core.Granted, lease("h", base), "1")
		lost(t, other.Extend(t.Context(), []core.Grant{c.Grant}, at(99_000)), "Extend")
		if mode != claim.Transition {
			lost(t, other.Settle(t.Context(), base, settle(c, core.Done, time.Time{})), "Settle")
		}
		require.NoError(t, h.Extend(t.Context(), []core.Grant{c.Grant}, at(99_000)))
	})
	testClocks(t, c, run)
	testTimes(t, mode, run, one)
	testRounding(t, mode, c.Table("orders", "a").Updated, run, one)
	if mode == claim.Transition {
		run("a claim reads", func(t *testing.T, h Handle) { claimReads(t, h, one) })
		run("a handler that did not make the step has failed", func(t *testing.T, h Handle) { stepOrFailure(t, h, one) })
		run("the step and its writes happen once", func(t *testing.T, h Handle) { stepOnce(t, h) })
		return
	}
	run("a payment wins over who holds the row", func(t *testing.T, h Handle) {
		h.Put(t, one)
		c := h.want(t, core.Granted, lease("h", base), "1")
		assert.Equal(t, Processing, h.read(t, "1", "status"))
		h.update(t, "1", "status = 'paid'")
		lost(t, h.Extend(t.Context(), []core.Grant{c.Grant}, at(60_000)), "Extend")
		for _, outcome := range []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released} {
			lost(t, h.Settle(t.Context(), at(1), settle(c, outcome, at(2))), outcome.String())
		}
		assert.Equal(t, "paid", h.read(t, "1", "status"))
		h.want(t, core.Gone, lease("other", at(99_000)), "1")
	})
	for _, state := range []string{Done, Pending} {
		run("a statement that sets the state to "+state+" wins over who holds the row", func(t *testing.T, h Handle) {
			h.Put(t, one)
			c := h.want(t, core.Granted, lease("h", base), "1")
			h.update(t, "1", "status = '"+state+"'")
			lost(t, h.Extend(t.Context(), []core.Grant{c.Grant}, at(60_000)), "Extend")
			for _, outcome := range []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released} {
				lost(t, h.Settle(t.Context(), at(1), settle(c, outcome, at(2))), outcome.String())
			}
			assert.Equal(t, state, h.read(t, "1", "status"))
		})
	}
	run("a row that other code put in processing is left alone", func(t *testing.T, h Handle) {
		h.Put(t, one)
		h.update(t, "1", "status = '"+Processing+"'")
		c := h.want(t, core.Refused, lease("h", at(99_000_000)), "1")
		require.ErrorContains(t, c.Err, "other code put it there")
		h.wantWaiting(t, at(99_000_000))
	})
	run("attempts, crashes and errors are counted in the row", func(t *testing.T, h Handle) {
		h.Put(t, one)
		first := h.want(t, core.Granted, lease("a", base), "1")
		second := h.want(t, core.Granted, lease("b", base.Add(LeaseFor+time.Second)), "1")
		assert.Equal(t, []int{1, 0, 2, 1}, []int{first.Attempt, first.Crashes, second.Attempt, second.Crashes})
		lost(t, h.Settle(t.Context(), base, settle(first, core.Done, time.Time{})), "the older holder")
		later := base.Add(LeaseFor + 2*time.Second)
		require.NoError(t, h.Settle(t.Context(), later, settle(second, core.DeadLetter, time.Time{})))
		assert.Equal(t, []string{Dead, "failed", "2", "1"}, []string{
			h.read(t, "1", "status"), h.read(t, "1", "last_error"), h.read(t, "1", "attempts"), h.read(t, "1", "crashes"),
		})
	})
	run("attempts that the user set to 0 don't fall below, which an unsigned column refuses", func(t *testing.T, h Handle) {
		h.Put(t, one)
		c := h.want(t, core.Granted, lease("a", base), "1")
		h.update(t, "1", "attempts = 0")
		require.NoError(t, h.Settle(t.Context(), at(1), settle(c, core.Released, at(5))))
		assert.Equal(t, "0", h.read(t, "1", "attempts"))
	})
	testTexts(t, run, one)
	if mode == claim.StatusUpdated {
		testUpdated(t, run, one)
		testFences(t, c, run, one)
		testLostHeartbeats(t, c.Table("orders", "a").Updated, run, one)
	}
}

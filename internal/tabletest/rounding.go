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

// testRounding: instants between two that the columns can hold. The columns here
// keep milliseconds; for those that keep seconds it is the same.
func testRounding(t *testing.T, mode claim.Mode, updated claim.TimeColumn, run func(name string, f func(t *testing.T, h Handle)), one core.Task) {
	t.Helper()
	const half = 500 * time.Microsecond
	run("a row is not due half a step before its time", func(t *testing.T, h Handle) {
		h.Put(t, one)
		h.want(t, core.NotDue, lease("h", base.Add(-half)), "1")
		h.want(t, core.Granted, lease("h", base.Add(half)), "1")
	})
	if mode == claim.Transition {
		return
	}
	run("a lease ends at the step after its end, and is over half a step later", func(t *testing.T, h Handle) {
		h.Put(t, one)
		l := lease("a", at(1000))
		l.Until = l.Until.Add(half)
		c := h.want(t, core.Granted, l, "1")
		end := at(1001).Add(LeaseFor)
		assert.Equal(t, end, h.want(t, core.Held, lease("b", at(1010)), "1").At)
		require.NoError(t, h.Extend(t.Context(), []core.Grant{c.Grant}, end.Add(time.Second+half)))
		end = end.Add(1001 * time.Millisecond)
		assert.Equal(t, end, h.want(t, core.Held, lease("b", at(1010)), "1").At, "extended")
		h.want(t, core.Held, lease("b", end), "1")
		h.want(t, core.Granted, lease("b", end.Add(half)), "1")
	})
	if mode != claim.Full {
		return
	}
	run("a retry is due at the step after its time", func(t *testing.T, h Handle) {
		h.Put(t, one)
		c := h.want(t, core.Granted, lease("a", base), "1")
		require.NoError(t, h.Settle(t.Context(), at(1), settle(c, core.Retry, at(5).Add(half))))
		assert.Equal(t, at(6), h.want(t, core.NotDue, lease("a", at(6).Add(-half)), "1").At)
		h.want(t, core.Granted, lease("a", at(6)), "1")
	})
	run("the time of the last change is written, and is not in the future", func(t *testing.T, h Handle) {
		h.Put(t, one)
		c := h.want(t, core.Granted, lease("a", at(1).Add(half)), "1")
		assert.EqualValues(t, 1, h.Exec(t, "UPDATE "+h.Name+" SET kind = 'seen' WHERE updated_at = "+h.Literal(updated, updated.AtMost(at(1)))), h.read(t, "1", "updated_at"))
		require.NoError(t, h.Settle(t.Context(), at(2), settle(c, core.Done, time.Time{})))
		assert.EqualValues(t, 1, h.Exec(t, "UPDATE "+h.Name+" SET kind = 'again' WHERE updated_at = "+h.Literal(updated, updated.AtMost(at(2)))), h.read(t, "1", "updated_at"))
	})
	run("the token rises also when a row is deleted and its id is used again, whatever the claimers believe the time is", func(t *testing.T, h Handle) {
		var token int64
		for i := range 6 {
			h.Put(t, one)
			c := h.want(t, core.Granted, lease("a", base.Add(time.Duration(6-i)*time.Hour)), "1")
			assert.Greater(t, c.Grant.Token, token)
			token = c.Grant.Token
			h.Exec(t, "DELETE FROM "+h.Name+" WHERE order_id = '1'")
		}
	})
}

// testLostHeartbeats is for mode StatusUpdated: what a holder may take for its own
// after heartbeats whose replies were lost.
func testLostHeartbeats(t *testing.T, column claim.TimeColumn, run func(name string, f func(t *testing.T, h Handle)), one core.Task) {
	t.Helper()
	// lose is a heartbeat at that time without an answer; took: it had its effect.
	lose := func(t *testing.T, h Handle, c core.Claimed, now time.Time, took bool) {
		t.Helper()
		cut, stop := context.WithCancel(t.Context())
		stop()
		err := h.Extend(cut, []core.Grant{c.Grant}, now.Add(LeaseFor))
		require.Error(t, err)
		require.NotErrorIs(t, err, core.ErrLeaseLost)
		if took {
			h.update(t, "1", "updated_at = "+h.Literal(column, column.AtLeast(now)))
		}
	}
	run("a heartbeat whose reply was lost may have had its effect or not", func(t *testing.T, h Handle) {
		for holder, took := range map[string]bool{"a": false, "b": true} {
			h.Put(t, one)
			c := h.want(t, core.Granted, lease(holder, base), "1")
			for i := range 20 { // a long way: each is known before the next is lost
				now := base.Add(time.Duration(i+1) * LeaseFor / 2)
				lose(t, h, c, now, took)
				require.NoError(t, h.Extend(t.Context(), []core.Grant{c.Grant}, now.Add(time.Second+LeaseFor)), "heartbeat %d", i)
			}
			for i := range 20 { // more than are remembered
				lose(t, h, c, base.Add(10*LeaseFor+time.Duration(2+i)*time.Second), took && i == 19)
			}
			require.NoError(t, h.Settle(t.Context(), base.Add(11*LeaseFor), settle(c, core.Done, time.Time{})))
			assert.Equal(t, Done, h.read(t, "1", "status"))
			h.Exec(t, "DELETE FROM "+h.Name+" WHERE order_id = '1'")
		}
	})
	run("a heartbeat after the lease's end whose reply was lost is not taken for what the newer holder wrote", func(t *testing.T, h Handle) {
		h.Put(t, one)
		a := h.want(t, core.Granted, lease("a", base), "1")
		over := base.Add(LeaseFor + time.Millisecond)
		lose(t, h, a, base.Add(LeaseFor-time.Second), false)
		lose(t, h, a, over, false)
		b := h.want(t, core.Granted, lease("b", over), "1")
		lost(t, h.Settle(t.Context(), over, settle(a, core.Done, time.Time{})), "Settle")
		lost(t, h.Extend(t.Context(), []core.Grant{a.Grant}, over.Add(time.Second+LeaseFor)), "Extend")
		require.NoError(t, h.Settle(t.Context(), over, settle(b, core.Done, time.Time{})))
	})
}

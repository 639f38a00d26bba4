package tabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// testUpdated is what mode StatusUpdated promises.
func testUpdated(t *testing.T, run func(name string, f func(t *testing.T, h Handle)), one core.Task) {
	t.Helper()
	lapsed := base.Add(LeaseFor + time.Millisecond)
	run("a claim whose reply was lost waits for its lease", func(t *testing.T, h Handle) {
		h.Put(t, one)
		l := lease("h", base)
		h.want(t, core.Granted, l, "1")
		assert.Equal(t, base.Add(LeaseFor), h.want(t, core.Held, l, "1").At, "a repeat")
		h.wantWaiting(t, base.Add(LeaseFor))
		h.wantWaiting(t, lapsed, core.Entry{ID: "1", Due: base})
		assert.Equal(t, 1, h.want(t, core.Granted, lease("h", lapsed), "1").Crashes)
	})
	run("a heartbeat moves the fence, and only who holds the row can write behind it", func(t *testing.T, h Handle) {
		h.Put(t, one)
		c := h.want(t, core.Granted, lease("a", base), "1")
		for i := 1; i <= 3; i++ {
			until := base.Add(LeaseFor + time.Duration(i)*time.Second)
			for range 2 { // a repeat is no loss
				require.NoError(t, h.Extend(t.Context(), []core.Grant{c.Grant}, until))
			}
			assert.Equal(t, until, h.want(t, core.Held, lease("b", base), "1").At)
		}
		require.NoError(t, h.Extend(t.Context(), []core.Grant{c.Grant}, base), "never shortened")
		over := base.Add(LeaseFor + 3*time.Second + time.Millisecond)
		next := h.want(t, core.Granted, lease("b", over), "1")
		assert.Greater(t, next.Grant.Token, c.Grant.Token)
		lost(t, h.Extend(t.Context(), []core.Grant{c.Grant}, over.Add(time.Hour)), "Extend of the older holder")
		for _, outcome := range []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released} {
			lost(t, h.Settle(t.Context(), over, settle(c, outcome, over)), outcome.String()+" of the older holder")
		}
		require.NoError(t, h.Extend(t.Context(), []core.Grant{next.Grant}, over.Add(2*LeaseFor)))
		require.NoError(t, h.Settle(t.Context(), over, settle(next, core.Done, time.Time{})))
		assert.Equal(t, Done, h.read(t, "1", "status"))
		require.NoError(t, h.Settle(t.Context(), over, settle(next, core.Done, time.Time{})), "a repeat, soon after")
	})
	run("who took over writes another time, whatever the older holder tries at that very moment", func(t *testing.T, h Handle) {
		h.Put(t, one)
		a := h.want(t, core.Granted, lease("a", base), "1")
		b := h.want(t, core.Granted, lease("b", lapsed), "1")
		// What the older one writes would be the very value that the newer one wrote.
		lost(t, h.Extend(t.Context(), []core.Grant{a.Grant}, lapsed.Add(LeaseFor)), "Extend")
		lost(t, h.Settle(t.Context(), lapsed, settle(a, core.Retry, lapsed)), "Settle")
		lost(t, h.Extend(t.Context(), []core.Grant{a.Grant}, lapsed.Add(LeaseFor)), "Extend, again")
		require.NoError(t, h.Settle(t.Context(), lapsed, settle(b, core.Done, time.Time{})))
		lost(t, h.Settle(t.Context(), lapsed, settle(a, core.Done, time.Time{})), "Settle at the moment of the newer one's")
	})
	run("a statement of the user's that touches the time ends the grant", func(t *testing.T, h Handle) {
		h.Put(t, one)
		c := h.want(t, core.Granted, lease("a", base), "1")
		h.update(t, "1", "updated_at = created_at")
		lost(t, h.Extend(t.Context(), []core.Grant{c.Grant}, at(60_000)), "Extend")
		lost(t, h.Settle(t.Context(), at(1), settle(c, core.Done, time.Time{})), "Settle")
	})
	run("a retry is pending at once, at its own due time", func(t *testing.T, h Handle) {
		h.Put(t, one)
		for i, outcome := range []core.Outcome{core.Retry, core.Released} {
			now := at(1000 * (i + 1))
			c := h.want(t, core.Granted, lease("a", now), "1")
			require.NoError(t, h.Settle(t.Context(), now.Add(time.Millisecond), settle(c, outcome, now.Add(time.Hour))))
			h.wantWaiting(t, now, core.Entry{ID: "1", Due: base})
		}
		again := h.want(t, core.Granted, lease("a", at(5000)), "1")
		assert.Equal(t, 2, again.Attempt, "one failed, one given back")
	})
}

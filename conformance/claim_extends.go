package conformance

import (
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

var claimExtends = []testCase[*claimEnv]{
	{
		name: "extend/moves-end",
		rule: "Extend moves the end of each lease to until: nobody takes over before that, anybody after it.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("b", base))
			c := e.grant(e.lease(base), "a")
			e.grant(e.lease(base), "b")
			require.NoError(e, e.peer.Extend(e.ctx, []core.Grant{c.Grant}, at(50_000)))
			got := e.claim(e.c, e.lease(at(50_000)), "a", "b")
			e.wantVerdict(got[0], core.Held, at(50_000), "at the new end")
			e.wantVerdict(got[1], core.Granted, at(80_000), "one that was not extended")
			e.wantWaiting(at(50_000), "at the new end")
			e.wantWaiting(at(50_001), "after the new end", core.Entry{ID: "a", Due: base})
			e.grant(e.lease(at(50_001)), "a")
		},
	},
	{
		name: "extend/never-shortens",
		rule: "Extend never shortens a lease; an earlier until is no error.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			c := e.grant(e.lease(base), "a")
			require.NoError(e, e.c.Extend(e.ctx, []core.Grant{c.Grant}, at(1)), "Extend to an earlier end")
			e.wantVerdict(e.claim(e.c, e.lease(at(2)), "a")[0], core.Held, c.At, "after it")
			e.settle(at(3), core.Settlement{Grant: c.Grant, Outcome: core.Done})
		},
	},
	{
		name: "extend/repeat",
		rule: "A repeat of an Extend that changed the row already is no loss.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("b", base))
			got := e.grantAll(e.lease(base), "a", "b")
			grants := []core.Grant{got[0].Grant, got[1].Grant}
			for range 3 {
				require.NoError(e, e.c.Extend(e.ctx, grants, at(50_000)))
			}
			require.NoError(e, e.c.Extend(e.ctx, grants[:1], at(30_001)), "to an end that is past already")
			for _, c := range e.claim(e.c, e.lease(at(49_000)), "a", "b") {
				e.wantVerdict(c, core.Held, at(50_000), "after four Extends")
			}
		},
	},
	{
		name: "extend/lapsed",
		rule: "Extend decides by token and holder, not by time: a lease that ended but was not granted to anybody since is extended.",
		run: func(e *claimEnv) {
			// Long ago and far ahead: a store that goes by a clock shows in one of them.
			for i, then := range []time.Time{longAgo, farAhead} {
				id := manyIDs("n", 2)[i]
				e.put(task(id, then))
				c := e.grant(core.Lease{Holder: e.unique("h"), Now: then, DueBy: then, Until: then.Add(10 * time.Second)}, id)
				later := then.Add(time.Minute)
				e.wantWaiting(later, "lapsed", core.Entry{ID: id, Due: then})
				require.NoError(e, e.c.Extend(e.ctx, []core.Grant{c.Grant}, later.Add(time.Minute)), "Extend long after the end")
				e.wantVerdict(e.claim(e.c, e.lease(later), id)[0], core.Held, later.Add(time.Minute), "extended again")
				e.wantWaiting(later, "held again")
				e.settle(later, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
		},
	},
	{
		name: "extend/lost",
		rule: "Items that are no longer theirs fail with ErrLeaseLost, in their places; all others take effect.",
		run: func(e *claimEnv) {
			ids := []core.ID{"taken", "mine", "done", "retried", "released", "dead", "also"}
			e.put(tasks(ids, base)...)
			got := e.grantAll(e.lease(base), ids...)
			grants := make([]core.Grant, len(got))
			for i, c := range got {
				grants[i] = c.Grant
			}
			for i, outcome := range map[int]core.Outcome{2: core.Done, 3: core.Retry, 4: core.Released, 5: core.DeadLetter} {
				e.settle(at(1), core.Settlement{Grant: grants[i], Outcome: outcome, Due: dueOf(outcome, at(2))})
			}
			require.NoError(e, e.c.Extend(e.ctx, []core.Grant{grants[1], grants[6]}, at(50_000)))
			now := base.Add(leaseFor + time.Millisecond)
			taker := e.grant(e.lease(now), "taken")
			grants = append(grants, core.Grant{ID: "unknown", Token: 1, Holder: "x"})
			e.wantRefusals(e.c.Extend(e.ctx, grants, at(90_000)), []refusal{
				{0, "taken", core.ErrLeaseLost},
				{2, "done", core.ErrLeaseLost},
				{3, "retried", core.ErrLeaseLost},
				{4, "released", core.ErrLeaseLost},
				{5, "dead", core.ErrLeaseLost},
				{7, "unknown", core.ErrLeaseLost},
			}, "Extend of a mixed batch")
			after := e.claim(e.c, e.lease(at(60_000)), "taken", "mine", "also")
			e.wantVerdict(after[0], core.Held, taker.At, "the lease of who took over is as it was")
			e.wantVerdict(after[1], core.Held, at(90_000), "mine")
			e.wantVerdict(after[2], core.Held, at(90_000), "also mine")
			e.wantWaiting(at(2), "retried and released are as they were",
				core.Entry{ID: "released", Due: at(2)}, core.Entry{ID: "retried", Due: at(2)})
		},
	},
}

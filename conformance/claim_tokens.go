package conformance

import (
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

var claimTokens = []testCase[*claimEnv]{
	{
		name: "token/rises",
		rule: "The grant's token is higher than every earlier one of that id, however the earlier grants ended.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			token, now := int64(0), base
			for i, end := range []core.Outcome{core.Retry, core.Released, 0, core.Retry, 0, 0, core.Released, core.Retry} {
				c := e.grant(e.lease(now), "a")
				if c.Grant.Token <= token {
					e.Errorf("grant %d: got token %d, want more than the %d of the grant before", i, c.Grant.Token, token)
				}
				token = c.Grant.Token
				now = now.Add(2 * leaseFor) // where it isn't settled its lease runs out
				if end != 0 {
					e.settle(now, core.Settlement{Grant: c.Grant, Outcome: end, Due: now})
				}
			}
		},
	},
	{
		name: "token/both-count",
		rule: "Extend and Settle compare token and holder: with either one wrong they fail with ErrLeaseLost and change nothing.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("pending", base))
			c := e.grant(e.lease(base), "a")
			for about, g := range map[string]core.Grant{
				"lower token":   {ID: "a", Token: c.Grant.Token - 1, Holder: c.Grant.Holder},
				"higher token":  {ID: "a", Token: c.Grant.Token + 1, Holder: c.Grant.Holder},
				"zero token":    {ID: "a", Holder: c.Grant.Holder},
				"other holder":  {ID: "a", Token: c.Grant.Token, Holder: "somebody"},
				"holder's case": {ID: "a", Token: c.Grant.Token, Holder: "H" + c.Grant.Holder[1:]},
				"no holder":     {ID: "a", Token: c.Grant.Token},
				"never granted": {ID: "pending", Token: c.Grant.Token, Holder: c.Grant.Holder},
				"unknown id":    {ID: "unknown", Token: c.Grant.Token, Holder: c.Grant.Holder},
			} {
				want := []refusal{{0, g.ID, core.ErrLeaseLost}}
				e.wantRefusals(e.c.Extend(e.ctx, []core.Grant{g}, at(99_000)), want, "Extend with "+about)
				for _, outcome := range []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released} {
					err := e.c.Settle(e.ctx, at(1), []core.Settlement{{Grant: g, Outcome: outcome, Due: dueOf(outcome, at(1))}})
					e.wantRefusals(err, want, "Settle "+outcome.String()+" with "+about)
				}
			}
			e.wantVerdict(e.claim(e.c, e.lease(at(2)), "a")[0], core.Held, c.At, "a, after all that")
			e.wantWaiting(at(2), "the pending one", core.Entry{ID: "pending", Due: base})
			fresh := e.grant(e.lease(at(2)), "pending")
			assert.Equal(e, 1, fresh.Attempt)
			e.settle(at(3), core.Settlement{Grant: c.Grant, Outcome: core.Done})
		},
	},
}

// dueOf is what Settlement.Due is to be: zero unless the task goes on.
func dueOf(outcome core.Outcome, due time.Time) time.Time {
	if outcome == core.Retry || outcome == core.Released {
		return due
	}
	return time.Time{}
}

package conformance

import (
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

var claimBatches = []testCase[*claimEnv]{
	{
		name: "batch/one-bad-of-many",
		rule: "One item of a long batch that fails is named by its place, one that can't be granted is answered in its place; all others take effect.",
		run: func(e *claimEnv) {
			n := e.scale(1001, 301)
			odd := n * 7 / 10
			ids := manyIDs("n", n)
			e.put(tasks(ids, base)...)
			other := e.grant(core.Lease{Holder: e.unique("other"), Now: base, DueBy: base, Until: at(77_000)}, ids[odd])
			got := e.claim(e.c, e.lease(base), ids...)
			grants := make([]core.Grant, n)
			for i, c := range got {
				if i == odd {
					e.wantVerdict(c, core.Held, other.At, "the one that another holds")
					grants[i] = core.Grant{ID: ids[i], Token: other.Grant.Token, Holder: "somebody"}
				} else {
					e.wantVerdict(c, core.Granted, base.Add(leaseFor), "beside one that is held")
					grants[i] = c.Grant
				}
			}
			want := []refusal{{odd, ids[odd], core.ErrLeaseLost}}
			e.wantRefusals(e.c.Extend(e.ctx, grants, at(60_000)), want, "Extend of many")
			ends := e.claim(e.peer, e.lease(at(50_000)), ids[0], ids[odd-1], ids[odd], ids[odd+1], ids[n-1])
			for i, c := range ends {
				want := at(60_000)
				if i == 2 {
					want = other.At
				}
				e.wantVerdict(c, core.Held, want, "after the Extend")
			}
			settlements := make([]core.Settlement, n)
			for i, g := range grants {
				settlements[i] = core.Settlement{Grant: g, Outcome: core.Done}
			}
			e.wantRefusals(e.c.Settle(e.ctx, at(1), settlements), want, "Settle of many")
			waiting := e.waiting(at(80_000))
			assert.Equal(e, show([]core.Entry{{ID: ids[odd], Due: base}}), show(waiting), "long after, all but the other's are done")
		},
	},
}

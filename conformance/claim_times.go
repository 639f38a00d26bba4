package conformance

import (
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var claimTimes = []testCase[*claimEnv]{
	{
		name: "times/leases",
		rule: "Leases end, and are extended, exactly to the millisecond from 1970 through 9999.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", len(instants))
			e.put(tasks(ids, instants[0])...)
			for i, until := range instants[:len(instants)-1] { // after the last one there is no time
				c := e.grant(core.Lease{Holder: e.unique("h"), Now: instants[0], DueBy: until, Until: until}, ids[i])
				held := core.Lease{Holder: e.unique("h"), Now: until, DueBy: until, Until: until}
				e.wantVerdict(e.claim(e.peer, held, ids[i])[0], core.Held, until, "at the lease's end")
				e.wantNoneOf(ids[i], until, "at the lease's end")
				later := instants[i+1]
				require.NoError(e, e.c.Extend(e.ctx, []core.Grant{c.Grant}, later), "Extend to %s", stamp(later))
				held = core.Lease{Holder: e.unique("h"), Now: later, DueBy: later, Until: later}
				e.wantVerdict(e.claim(e.peer, held, ids[i])[0], core.Held, later, "at the extended lease's end")
				if later.Equal(endOfTime) {
					continue
				}
				over := later.Add(time.Millisecond)
				e.wantVerdict(e.claim(e.peer, core.Lease{Holder: e.unique("h"), Now: over, DueBy: later, Until: endOfTime}, ids[i])[0],
					core.Granted, endOfTime, "a millisecond after the extended lease's end")
			}
		},
	},
	{
		name: "waiting/bounds-exact",
		rule: "now, after and before are compared exactly to the millisecond from 1970 through 9999.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", len(instants))
			var rows []core.Entry
			for i, due := range instants {
				e.put(task(ids[i], due))
				rows = append(rows, core.Entry{ID: ids[i], Due: due})
			}
			for i, row := range rows {
				got, err := e.c.Waiting(e.ctx, row.Due, core.Entry{}, row.Due, 100)
				require.NoError(e, err)
				e.wantEntries(rows[:i], got, "before %s", stamp(row.Due))
				if i+1 < len(rows) {
					got, err = e.c.Waiting(e.ctx, row.Due, row, rows[i+1].Due, 100)
					require.NoError(e, err)
					e.wantEntries(nil, got, "after %s and before the next one", stamp(row.Due))
				}
				if i > 0 {
					got, err = e.c.Waiting(e.ctx, row.Due, rows[i-1], row.Due.Add(time.Millisecond), 100)
					require.NoError(e, err)
					e.wantEntries(rows[i:i+1], got, "after the one before it, up to %s", stamp(row.Due))
				}
			}
		},
	},
	{
		name: "claim/holder-bytes",
		rule: "A holder is 1 to 64 bytes of printable ASCII, stored and compared byte for byte.",
		run: func(e *claimEnv) {
			long := strings.Repeat("x", core.MaxCallBytes-1)
			holders := []string{"x", "X", long + "a", long + "b", `'"\%_` + "`$1?:a{}[]()*;--", `\`, `'`, "null", "0", "00"}
			ids := manyIDs("n", len(holders))
			e.put(tasks(ids, base)...)
			for i, holder := range holders {
				lease := core.Lease{Holder: holder, Now: base, DueBy: base, Until: at(1000)}
				first := e.grant(lease, ids[i])
				assert.Equal(e, first, e.claim(e.peer, lease, ids[i])[0], "a repeat by the holder %q", holder)
				for _, other := range holders {
					if other != holder {
						lease.Holder = other
						e.wantVerdict(e.claim(e.c, lease, ids[i])[0], core.Held, at(1000), "holder "+other+" on what "+holder+" holds")
					}
				}
				e.settle(at(1), core.Settlement{Grant: first.Grant, Outcome: core.Done})
			}
		},
	},
	{
		name: "token/rises-for-the-same-holder",
		rule: "A repeat of a Claim after its grant was settled never brings that grant back: what it is granted has a higher token.",
		run: func(e *claimEnv) {
			for _, outcome := range []core.Outcome{core.Retry, core.Released} {
				id := core.ID(outcome.String())
				e.put(task(id, base))
				lease := e.lease(at(5))
				first := e.grant(lease, id)
				e.settle(at(5), core.Settlement{Grant: first.Grant, Outcome: outcome, Due: at(5)})
				again := e.claim(e.peer, lease, id)[0]
				if again.Verdict == core.Granted && again.Grant.Token <= first.Grant.Token {
					e.Errorf("%s: got token %d for a repeat of the Claim, want no grant or one above %d", outcome, again.Grant.Token, first.Grant.Token)
				}
				e.put(task(id+" later", base))
				first = e.grant(lease, id+" later")
				e.settle(at(5), core.Settlement{Grant: first.Grant, Outcome: outcome, Due: at(6)})
				e.wantVerdict(e.claim(e.peer, lease, id+" later")[0], core.NotDue, at(6), "settled to later, and claimed again by the same holder")
			}
		},
	},
}

// wantNoneOf fails where id waits at now.
func (e *claimEnv) wantNoneOf(id core.ID, now time.Time, about string) {
	for _, entry := range e.waiting(now) {
		if entry.ID == id {
			e.Errorf("%s: %q waits, want it held", about, id)
		}
	}
}

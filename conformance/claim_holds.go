package conformance

import (
	"context"

	"github.com/dueclaim/dueclaim/core"
)

var claimHolds = []testCase[*claimEnv]{
	{
		name: "hold/claims", needs: "Hold", timed: true,
		rule: "While another holds the whole backend Claim, Extend, Settle and Waiting return soon after their ctx is done, also behind a call that may wait longer; afterwards the same handle works, and a repeat is harmless.",
		run: func(e *claimEnv) {
			e.shaken = true
			e.put(tasks([]core.ID{"claimed", "first", "extended", "settled"}, base)...)
			got := e.grantAll(e.lease(base), "extended", "settled")
			mine, first := e.lease(base), e.lease(base)
			attempts := []attempt{
				e.mayGrant("claimed", mine),
				{"Extend", func(ctx context.Context) error { return e.c.Extend(ctx, []core.Grant{got[0].Grant}, at(90_000)) }},
				{"Settle", func(ctx context.Context) error {
					return e.c.Settle(ctx, at(1), []core.Settlement{{Grant: got[1].Grant, Outcome: core.Retry, Due: at(7)}})
				}},
				{"Waiting", func(ctx context.Context) error {
					_, err := e.c.Waiting(ctx, base, core.Entry{}, endOfTime, 100)
					return err
				}},
			}
			e.held(e.hold, e.mayGrant("first", first), attempts)
			e.backAgain()
			e.wantSuccess(attempts)
			for id, lease := range map[core.ID]core.Lease{"claimed": mine, "first": first} {
				for _, c := range e.claimInsisting(e.c, lease, []core.ID{id}) {
					e.wantVerdict(c, core.Granted, lease.Until, "afterwards")
				}
			}
			e.wantVerdict(e.claim(e.peer, e.lease(at(60_000)), "extended")[0], core.Held, at(90_000), "the extended one")
			e.wantVerdict(e.claim(e.peer, e.lease(at(2)), "settled")[0], core.NotDue, at(7), "the retried one")
		},
	},
}

// mayGrant is a Claim of id, which may be refused for a lock.
func (e *claimEnv) mayGrant(id core.ID, lease core.Lease) attempt {
	return attempt{"Claim", func(ctx context.Context) error {
		got, err := e.c.Claim(ctx, []core.ID{id}, lease)
		if err == nil && len(got) == 1 && got[0].Verdict == core.Refused {
			return core.ErrBusy
		}
		if err == nil && (len(got) != 1 || got[0].Verdict != core.Granted) {
			e.Errorf("Claim of %q: got %v, want an error, Refused or Granted", id, got)
		}
		return err
	}}
}

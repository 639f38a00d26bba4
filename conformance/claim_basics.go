package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var claimBasics = []testCase[*claimEnv]{
	{
		name: "contract/provides-clock",
		rule: "A claimer has the optional capability TimeSource where it is declared, and only there.",
		run: func(e *claimEnv) {
			for _, c := range e.handles(2) {
				_, clock := c.(core.TimeSource)
				assert.Equal(e, e.provides.TimeSource, clock, "Provides.TimeSource against what the handle has")
			}
		},
	},
	{
		name: "contract/provides-dates",
		rule: "A claimer says that it is undated where it is declared, and only there.",
		run: func(e *claimEnv) {
			for _, c := range e.handles(2) {
				u, ok := c.(core.Undated)
				assert.Equal(e, e.provides.Undated, ok && u.Undated(), "Provides.Undated against what the handle says")
			}
		},
	},
	{
		name: "contract/empty-batch",
		rule: "An empty slice is a no-op that returns nil.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			got, err := e.c.Claim(e.ctx, nil, e.lease(base))
			assert.NoError(e, err, "Claim")
			assert.Empty(e, got, "Claim")
			assert.NoError(e, e.c.Extend(e.ctx, []core.Grant{}, at(1)), "Extend")
			assert.NoError(e, e.c.Settle(e.ctx, base, nil), "Settle")
			e.wantWaiting(base, "after empty batches", core.Entry{ID: "a", Due: base})
		},
	},
	{
		name: "contract/done-ctx",
		rule: "With a ctx that is already done a method returns its error and does nothing.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("b", base))
			a := e.grant(e.lease(base), "a")
			_, err := e.c.Claim(done(), []core.ID{"b"}, e.lease(base))
			assert.ErrorIs(e, err, context.Canceled, "Claim")
			assert.ErrorIs(e, e.c.Extend(done(), []core.Grant{a.Grant}, at(99_000)), context.Canceled, "Extend")
			assert.ErrorIs(e, e.c.Settle(done(), base, []core.Settlement{{Grant: a.Grant, Outcome: core.Done}}), context.Canceled, "Settle")
			_, err = e.c.Waiting(done(), base, core.Entry{}, endOfTime, 10)
			assert.ErrorIs(e, err, context.Canceled, "Waiting")
			e.wantWaiting(base, "b was not claimed", core.Entry{ID: "b", Due: base})
			e.wantVerdict(e.claim(e.c, e.lease(base), "a")[0], core.Held, base.Add(leaseFor), "a is neither extended nor settled")
		},
	},
	{
		name: "contract/slices-are-the-callers",
		rule: "Slices belong to the caller again after the return, and are left as they were; so does the memory of what is returned.",
		run: func(e *claimEnv) {
			e.put(task("c", base), task("a", base), task("b", base))
			ids := []core.ID{"c", "a", "b"}
			lease := e.lease(base)
			got, err := e.c.Claim(e.ctx, ids, lease)
			require.NoError(e, err)
			assert.Equal(e, []core.ID{"c", "a", "b"}, ids, "Claim changed its argument")
			clear(ids)
			e.wantForm(got, lease, []core.ID{"c", "a", "b"})
			for i := range got {
				clear(got[i].Task.Payload)
			}
			grants := []core.Grant{got[0].Grant, got[1].Grant, got[2].Grant}
			given := slices.Clone(grants)
			require.NoError(e, e.c.Extend(e.ctx, grants, at(40_000)))
			assert.Equal(e, given, grants, "Extend changed its argument")
			var settlements []core.Settlement
			for _, g := range grants {
				settlements = append(settlements, core.Settlement{Grant: g, Outcome: core.Released, Due: base})
			}
			before := slices.Clone(settlements)
			e.settle(base, settlements...)
			assert.Equal(e, before, settlements, "Settle changed its argument")
			again := e.grant(e.lease(base), "c")
			assert.Equal(e, "payload of c", string(again.Task.Payload), "payload after the caller cleared what it had got")
		},
	},
	{
		name: "contract/large-batch",
		rule: "A slice may have any length; every item of it takes effect.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", e.scale(1001, 301))
			e.put(tasks(ids, base)...)
			lease := e.lease(base)
			mixed := append(slices.Clone(ids), "unknown")
			slices.Reverse(mixed)
			got := e.claim(e.c, lease, mixed...)
			assert.Equal(e, core.Gone, got[0].Verdict, "the unknown one")
			var grants []core.Grant
			var settlements []core.Settlement
			for _, c := range got[1:] {
				require.Equal(e, core.Granted.String(), c.Verdict.String(), c.ID)
				grants = append(grants, c.Grant)
				settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(5), Err: "failed"})
			}
			require.NoError(e, e.c.Extend(e.ctx, grants, at(99_000)), "Extend of many")
			for _, c := range e.claim(e.c, e.lease(at(98_999)), ids...) {
				e.wantVerdict(c, core.Held, at(99_000), "extended")
			}
			require.NoError(e, e.c.Settle(e.ctx, at(1), settlements), "Settle of many")
			assert.Len(e, e.waiting(at(1)), len(ids), "all wait again")
			one := e.grant(e.lease(at(5)), ids[len(ids)/2])
			require.NoError(e, e.c.Settle(e.ctx, at(6), []core.Settlement{{Grant: one.Grant, Outcome: core.Done}}), "Settle of 1")
			assert.Len(e, e.waiting(at(6)), len(ids)-1, "all but one wait")
		},
	},
	{
		name: "ids/bytes",
		rule: "Ids are bytes: two ids that differ in case, composition or collation are two tasks, and each comes back as it was given.",
		run: func(e *claimEnv) {
			e.put(tasks(awkwardIDs, base)...)
			sorted := slices.Clone(awkwardIDs)
			slices.Sort(sorted)
			var want []core.Entry
			for _, id := range sorted {
				want = append(want, core.Entry{ID: id, Due: base})
			}
			e.wantWaiting(base, "in the order of their bytes", want...)
			for i, c := range e.grantAll(e.lease(base), awkwardIDs...) {
				assert.Equal(e, "payload of "+string(awkwardIDs[i]), string(c.Task.Payload), "payload of id %d, %q", i, c.ID)
			}
		},
	},
	{
		name: "ids/change-one",
		rule: "A claim, extension or settlement touches the task with exactly these bytes and no other.",
		run: func(e *claimEnv) {
			e.put(tasks(awkwardIDs, base)...)
			lease := e.lease(base)
			var odd, even []core.ID
			for i, id := range awkwardIDs {
				if i%2 == 0 {
					even = append(even, id)
				} else {
					odd = append(odd, id)
				}
			}
			for _, c := range e.claim(e.c, e.lease(base), "none", "S", "Null", "á ", "À") {
				want := core.Gone
				if c.ID.Check() != nil && c.Verdict == core.Refused { // no id at all, and it says so
					want = core.Refused
				}
				e.wantVerdict(c, want, time.Time{}, "an id that was never there")
			}
			granted := e.grantAll(lease, even...)
			for i, c := range granted {
				if i%2 == 0 {
					e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.DeadLetter})
				} else {
					require.NoError(e, e.c.Extend(e.ctx, []core.Grant{c.Grant}, at(60_000)), "Extend %q", c.ID)
				}
			}
			for i, c := range e.claim(e.c, e.lease(at(31_000)), even...) {
				if i%2 == 0 {
					e.wantVerdict(c, core.Gone, time.Time{}, "settled")
				} else {
					e.wantVerdict(c, core.Held, at(60_000), "extended")
				}
			}
			e.grantAll(e.lease(base), odd...)
		},
	},
	{
		name: "times/exact",
		rule: "Times from 1970 through 9999 are stored exactly to the millisecond and come back in UTC.",
		run: func(e *claimEnv) {
			for i, due := range instants {
				id := core.ID(rune('a' + i))
				e.put(task(id, due))
				got := e.claim(e.c, core.Lease{Holder: e.unique("early"), Now: base, DueBy: due.Add(-time.Millisecond), Until: at(1)}, id)
				e.wantVerdict(got[0], core.NotDue, due, "a millisecond early")
				waiting, err := e.c.Waiting(e.ctx, base, core.Entry{}, endOfTime, 1000)
				require.NoError(e, err)
				if due.Before(endOfTime) { // the bound is exclusive
					e.wantEntries([]core.Entry{{ID: id, Due: due}}, waiting, "waiting")
				}
				c := e.claim(e.c, core.Lease{Holder: e.unique("sharp"), Now: base, DueBy: due, Until: due}, id)[0]
				e.wantVerdict(c, core.Granted, due, "on the dot, with a lease that ends then, too")
				if c.Verdict != core.Granted {
					continue
				}
				e.wantTime(due, c.Task.Due, "Task.Due")
				e.settle(base, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: due})
				c = e.grant(core.Lease{Holder: e.unique("again"), Now: base, DueBy: due, Until: endOfTime}, id)
				e.wantTime(due, c.Task.Due, "Task.Due after a retry at that time")
				e.wantVerdict(e.claim(e.c, core.Lease{Holder: e.unique("other"), Now: endOfTime, DueBy: endOfTime, Until: endOfTime}, id)[0],
					core.Held, endOfTime, "a lease to the end of time")
				e.settle(base, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
		},
	},
	{
		name: "clock/shared", needs: "TimeSource",
		rule: "Now returns the backend's current time, at least to the millisecond, the same for every handle; with a ctx that is done it returns its error.",
		run: func(e *claimEnv) {
			read := func(c core.Claimer) time.Time {
				now, err := c.(core.TimeSource).Now(e.ctx)
				require.NoError(e, err, "Now")
				return now
			}
			a, b, c := read(e.c), read(e.peer), read(e.c)
			assert.False(e, a.IsZero(), "zero time")
			assert.Same(e, time.UTC, a.Location(), "the zone of Now, which is UTC like all times")
			// A millisecond of slack: readings may be rounded.
			assert.False(e, b.Before(a.Add(-time.Millisecond)) || c.Before(b.Add(-time.Millisecond)),
				"got %s, then %s from another handle, then %s; want each no earlier than the one before", stamp(a), stamp(b), stamp(c))
			if !e.wait(func() bool { return read(e.c).After(a) }) {
				e.Errorf("got %s again and again, want a clock that goes on", stamp(a))
			}
			later := read(e.c)
			if !e.wait(func() bool {
				now := read(e.c)
				return now.After(later) && now.Sub(later) < time.Second
			}) {
				e.Errorf("the clock goes in steps of a second or more, want milliseconds")
			}
			_, err := e.c.(core.TimeSource).Now(done())
			assert.ErrorIs(e, err, context.Canceled, "with a ctx that is done")
		},
	},
}

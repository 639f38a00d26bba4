package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call on a locked row gets this long before its ctx ends.
const lockWait = 400 * time.Millisecond

var claimLocks = []testCase[*claimEnv]{
	{
		name: "lock/claim", needs: "Lock", timed: true,
		rule: "Claim never waits for a locked row beyond ctx; the row may be answered Refused and is as it was.",
		run: func(e *claimEnv) {
			e.put(task("locked", base), task("free", base))
			unlock := e.lock("locked")
			lease := e.lease(base)
			var got []core.Claimed
			err := e.within(func(ctx context.Context) (err error) {
				got, err = e.c.Claim(ctx, []core.ID{"locked", "free"}, lease)
				return err
			})
			if err == nil {
				e.wantForm(got, lease, []core.ID{"locked", "free"})
				e.wantVerdict(got[0], core.Refused, time.Time{}, "the locked row")
				e.wantVerdict(got[1], core.Granted, lease.Until, "the free row")
			}
			unlock()
			for _, c := range e.claimInsisting(e.c, lease, []core.ID{"locked", "free"}) {
				e.wantVerdict(c, core.Granted, lease.Until, "repeated after the lock was gone")
				assert.Equal(e, e.attempt(1), c.Attempt, "Attempt of %q", c.ID)
			}
		},
	},
	{
		name: "lock/extend", needs: "Lock", timed: true,
		rule: "One locked row never holds up the others' Extend: it may fail with ErrBusy and is as it was.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("locked", base), task("z", base))
			got := e.grantAll(e.lease(base), "a", "locked", "z")
			grants := []core.Grant{got[0].Grant, got[1].Grant, got[2].Grant}
			unlock := e.lock("locked")
			err := e.within(func(ctx context.Context) error { return e.c.Extend(ctx, grants, at(90_000)) })
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				e.wantRefusals(err, []refusal{{1, "locked", core.ErrBusy}}, "Extend")
			}
			for _, c := range e.claim(e.peer, e.lease(at(60_000)), "a", "z") {
				e.wantVerdict(c, core.Held, at(90_000), "beside a locked row")
			}
			unlock()
			require.NoError(e, e.insist(func() error { return e.c.Extend(e.ctx, grants, at(90_000)) }), "repeated after the lock was gone")
			e.wantVerdict(e.claim(e.peer, e.lease(at(60_000)), "locked")[0], core.Held, at(90_000), "after the repeat")
		},
	},
	{
		name: "lock/settle", needs: "Lock", timed: true,
		rule: "Settle never waits for a locked row beyond ctx; the row may fail with ErrBusy and is as it was.",
		run: func(e *claimEnv) {
			e.put(task("locked", base), task("free", base))
			got := e.grantAll(e.lease(base), "locked", "free")
			var settlements []core.Settlement
			for _, c := range got {
				settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(5)})
			}
			unlock := e.lock("locked")
			err := e.within(func(ctx context.Context) error { return e.c.Settle(ctx, at(1), settlements) })
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				e.wantRefusals(err, []refusal{{0, "locked", core.ErrBusy}}, "Settle")
			}
			unlock()
			require.NoError(e, e.insist(func() error { return e.c.Settle(e.ctx, at(1), settlements) }), "repeated after the lock was gone")
			e.wantWaiting(at(1), "after the repeat", core.Entry{ID: "free", Due: at(5)}, core.Entry{ID: "locked", Due: at(5)})
		},
	},
	{
		name: "lock/waiting", needs: "Lock",
		rule: "Waiting never waits for a locked row beyond ctx.",
		run: func(e *claimEnv) {
			e.put(task("locked", base))
			unlock := e.lock("locked")
			defer unlock()
			_ = e.within(func(ctx context.Context) error {
				_, err := e.c.Waiting(ctx, base, core.Entry{}, at(1), 10)
				return err
			})
		},
	},
}

// within makes a call whose ctx ends soon and fails when it outlasts that by
// much. It returns nil, a *core.BatchError or an error of the ended ctx.
func (c *caseT) within(call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, lockWait)
	defer cancel()
	start := time.Now()
	err := call(ctx)
	if took := time.Since(start); took > lockWait+c.patience/2 {
		c.Errorf("the call took %s, %s longer than its ctx; want it to return soon", took, took-lockWait)
	}
	return err
}

// unhindered makes a call that no lock stands in the way of: one that waits for
// one ends with its ctx.
func (c *caseT) unhindered(call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.patience)
	defer cancel()
	return call(ctx)
}

package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var claimBys = []testCase[*claimEnv]{
	{
		name: "by/claim",
		rule: "A Claim that comes after its By grants nothing and answers ErrNotDone; one that comes before it is as any other.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("b", base))
			late := e.lease(base)
			late.By = e.past()
			_, err := e.c.Claim(e.ctx, []core.ID{"a", "b"}, late)
			e.wantNotDone(err, "Claim")
			e.wantWaiting(base, "after a Claim that came too late", core.Entry{ID: "a", Due: base}, core.Entry{ID: "b", Due: base})
			c := e.grant(e.lease(base), "a")
			assert.Equal(e, e.attempt(1), c.Attempt, "Attempt after a Claim that came too late")

			over := base.Add(2 * leaseFor)
			late = e.lease(over)
			late.By = e.past()
			_, err = e.c.Claim(e.ctx, []core.ID{"a"}, late)
			e.wantNotDone(err, "Claim of a lapsed one")
			inTime := e.lease(over)
			inTime.By = e.clock().Add(time.Minute)
			c = e.grantAll(inTime, "a", "b")[0]
			assert.Equal(e, e.attempt(2), c.Attempt, "Attempt of the take-over")
			e.settle(over, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(99_000)})
		},
	},
	{
		name: "by/held-claim", needs: "Hold", timed: true,
		rule: "A Claim that is held up until after its By, wherever it waits, has no effect when it goes on.",
		run: func(e *claimEnv) {
			e.shaken = true
			e.put(task("a", base), task("running", base))
			e.grant(e.lease(base), "running")
			over := base.Add(2 * leaseFor)
			e.tooLate(e.hold, func(ctx context.Context, by time.Time) error {
				lease := e.lease(over)
				lease.By = by
				_, err := e.c.Claim(ctx, []core.ID{"a", "running"}, lease)
				return err
			})
			got := e.claimInsisting(e.peer, e.lease(over), []core.ID{"a", "running"})
			for i, attempt := range []int{1, 2} {
				e.wantVerdict(got[i], core.Granted, over.Add(leaseFor), "afterwards")
				assert.Equal(e, e.attempt(attempt), got[i].Attempt, "Attempt of %q: the late Claim had none", got[i].ID)
			}
		},
	},
	{
		name: "by/locked-claim", needs: "Lock", timed: true,
		rule: "A Claim that waits for a locked row until after its By doesn't get it then.",
		run: func(e *claimEnv) {
			e.shaken = true
			e.put(task("locked", base))
			e.tooLate(func() func() { return e.lock("locked") }, func(ctx context.Context, by time.Time) error {
				lease := e.lease(base)
				lease.By = by
				got, err := e.c.Claim(ctx, []core.ID{"locked"}, lease)
				if err == nil && len(got) == 1 && got[0].Verdict == core.Refused {
					err = core.ErrBusy
				}
				return err
			})
			got := e.claimInsisting(e.peer, e.lease(base), []core.ID{"locked"})
			e.wantVerdict(got[0], core.Granted, base.Add(leaseFor), "afterwards")
			assert.Equal(e, e.attempt(1), got[0].Attempt, "Attempt: the late Claim had none")
		},
	},
	{
		name: "claim/not-before",
		rule: "A grant says from when it may start: the later of NotBefore and Task.Due is the row's due time, as it was put there or as Retry or Released left it, also where it was claimed ahead.",
		run: func(e *claimEnv) {
			if c, ok := e.c.(core.NoAhead); ok && c.NoAhead() {
				return // nothing is claimed ahead there
			}
			e.put(task("a", at(5000)))
			ahead := func(now int) core.Claimed {
				return e.grant(core.Lease{Holder: e.unique("h"), Now: at(now), DueBy: at(now + 9000), Until: at(now + 10_000)}, "a")
			}
			c := ahead(0)
			e.wantTime(at(5000), startOf(c), "the start of a new one")
			e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.Released, Due: at(6000)})
			c = ahead(2)
			e.wantTime(at(6000), startOf(c), "the start after Released")
			e.settle(at(3), core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(7000)})
			c = ahead(4)
			e.wantTime(at(7000), startOf(c), "the start after Retry")
			e.settle(at(5), core.Settlement{Grant: c.Grant, Outcome: core.Released, Due: at(8000)})
			e.wantTime(at(8000), startOf(ahead(6)), "the start after Retry and Released")
			e.wantTime(at(8000), startOf(ahead(20_000)), "the start of a take-over")
		},
	},
}

// startOf is from when core starts a grant.
func startOf(c core.Claimed) time.Time {
	if c.NotBefore.After(c.Task.Due) {
		return c.NotBefore
	}
	return c.Task.Due
}

// clock reads the store's clock.
func (e *claimEnv) clock() time.Time {
	clock, ok := e.c.(core.TimeSource)
	if !ok {
		return time.Now()
	}
	var now time.Time
	require.NoError(e, e.surely(func() (err error) { now, err = clock.Now(e.ctx); return err }), "Now")
	return now
}

// past is a By that is over.
func (e *claimEnv) past() time.Time { return core.FloorMilli(e.clock().Add(-5 * time.Millisecond)) }

func (c *caseT) wantNotDone(err error, call string) {
	if !errors.Is(err, core.ErrNotDone) {
		c.Errorf("%s after its By: got %v, want an error that wraps core.ErrNotDone", call, err)
	}
}

// A call that is held up gives itself so much time.
const heldUp = 300 * time.Millisecond

// tooLate makes calls while hold is in force and lets go of it when their By is over;
// none of them may succeed.
func (e *claimEnv) tooLate(hold func() (release func()), calls ...func(ctx context.Context, by time.Time) error) {
	by := core.CeilMilli(e.clock().Add(heldUp)) // before the hold, which could hold this up too
	began := time.Now()
	release := hold()
	var wg sync.WaitGroup
	for i, call := range calls {
		e.spawn(&wg, func() {
			ctx, cancel := context.WithTimeout(e.ctx, heldUp+e.patience)
			defer cancel()
			if err := call(ctx, by); err == nil {
				e.Errorf("call %d: got no error, though its way was barred until after its By; want ErrNotDone, or that it waited in vain", i)
			}
		})
	}
	e.wait(func() bool { return time.Since(began) > heldUp+50*time.Millisecond })
	release()
	wg.Wait()
}

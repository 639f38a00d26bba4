package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

// backAgain waits until the handle works again after heal.
func (e *claimEnv) backAgain() {
	for _, c := range []core.Claimer{e.c, e.peer} {
		var err error
		if !e.wait(func() bool { _, err = c.Waiting(e.ctx, base, core.Entry{}, base, 1); return err == nil }) {
			e.Errorf("got error %v long after the backend was back, want the handle to work again by itself", err)
			e.FailNow()
		}
	}
}

// mustGrant is a Claim whose answer must be that id is granted.
func (e *claimEnv) mustGrant(id core.ID, lease core.Lease) attempt {
	return attempt{"Claim", func(ctx context.Context) error {
		got, err := e.c.Claim(ctx, []core.ID{id}, lease)
		if err == nil && (len(got) != 1 || got[0].Verdict != core.Granted) {
			verdict := "no verdict"
			if len(got) == 1 {
				verdict = got[0].Verdict.String()
			}
			e.Errorf("Claim of %q: got %s, want an error or Granted", id, verdict)
		}
		return err
	}}
}

// mustWait is a call of Waiting that must find this many rows.
func (e *claimEnv) mustWait(want int) attempt {
	return attempt{"Waiting", func(ctx context.Context) error {
		got, err := e.c.Waiting(ctx, base, core.Entry{}, endOfTime, 100)
		if err == nil && len(got) != want {
			e.Errorf("Waiting: got %d rows, want an error or the %d that there are", len(got), want)
		}
		return err
	}}
}

// longAttempts are calls of so many items that an adapter may cut them or send
// them another way. There are no such tasks, so that none of them changes
// anything.
func (e *claimEnv) longAttempts() []attempt {
	ids := manyIDs("absent", 1001)
	grants, settlements := make([]core.Grant, len(ids)), make([]core.Settlement, len(ids))
	lease := e.lease(base)
	for i, id := range ids {
		grants[i] = core.Grant{ID: id, Token: 1, Holder: lease.Holder}
		settlements[i] = core.Settlement{Grant: grants[i], Outcome: core.Done}
	}
	return []attempt{
		{"Claim of 1,001", func(ctx context.Context) error { _, err := e.c.Claim(ctx, ids, lease); return err }},
		{"Extend of 1,001", func(ctx context.Context) error { return e.c.Extend(ctx, grants, at(90_000)) }},
		{"Settle of 1,001", func(ctx context.Context) error { return e.c.Settle(ctx, at(1), settlements) }},
	}
}

var claimBreaks = []testCase[*claimEnv]{
	{
		name: "break/claims", needs: "Break", timed: true,
		rule: "While its backend is away each method returns an error soon, and no verdict; then the same handle works again, nothing that was stored is lost, and a repeat of what failed is harmless.",
		run: func(e *claimEnv) {
			ids := []core.ID{"claimed", "done", "extended", "kept", "retried"}
			for round := range 2 {
				for i := range ids {
					ids[i] += "."
				}
				e.put(tasks(ids, base)...)
				got := e.grantAll(e.lease(base), ids[1], ids[2], ids[4])
				mine := e.lease(base)
				attempts := []attempt{
					{"Extend", func(ctx context.Context) error {
						return e.c.Extend(ctx, []core.Grant{got[1].Grant}, at(90_000))
					}},
					e.mustGrant(ids[0], mine),
					{"Settle with Done", func(ctx context.Context) error {
						err := e.c.Settle(ctx, at(1), []core.Settlement{{Grant: got[0].Grant, Outcome: core.Done}})
						return tolerated(err, e.provides.KeepsFinished)
					}},
					{"Settle with Retry", func(ctx context.Context) error {
						return e.c.Settle(ctx, at(1), []core.Settlement{{Grant: got[2].Grant, Outcome: core.Retry, Due: at(7)}})
					}},
				}
				reads := []attempt{{"Waiting", func(ctx context.Context) error {
					_, err := e.c.Waiting(ctx, base, core.Entry{}, endOfTime, 100)
					return err
				}}}
				if clock, ok := e.c.(core.TimeSource); ok {
					reads = append(reads, attempt{"Now", func(ctx context.Context) error { _, err := clock.Now(ctx); return err }})
				}
				heal := e.breakIt()
				e.wantErrors(attempts)
				e.wantErrors(reads)
				if round == 0 { // they may take a while to fail
					e.wantErrors(e.longAttempts())
				}
				heal()
				e.backAgain()
				e.wantSuccess(attempts)
				e.wantSuccess([]attempt{e.mustWait(2 + 2*round)}) // this round's and the one's before
				assert.Equal(e, 1, e.claim(e.c, mine, ids[0])[0].Attempt, "Attempt of the claimed one")
				e.wantVerdict(e.claim(e.peer, e.lease(at(60_000)), ids[2])[0], core.Held, at(90_000), "the extended one")
				e.wantVerdict(e.claim(e.peer, e.lease(at(2)), ids[1])[0], core.Gone, time.Time{}, "the done one")
				e.wantVerdict(e.claim(e.peer, e.lease(at(2)), ids[4])[0], core.NotDue, at(7), "the retried one")
			}
		},
	},
	{
		name: "break/deadline-claims", needs: "Break",
		rule: "Also while its backend is away a method returns soon after ctx is done.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("b", base))
			c := e.grant(e.lease(base), "b")
			heal := e.breakIt()
			defer heal()
			e.wantInTime([]attempt{
				e.mustGrant("a", e.lease(base)),
				{"Extend", func(ctx context.Context) error { return e.c.Extend(ctx, []core.Grant{c.Grant}, at(90_000)) }},
				{"Settle", func(ctx context.Context) error {
					return e.c.Settle(ctx, at(1), []core.Settlement{{Grant: c.Grant, Outcome: core.Done}})
				}},
				e.mustWait(1),
			})
		},
	},
	{
		name: "break/midway-claims", needs: "Break", timed: true,
		rule: "What was under way when the backend failed is repeated with the same arguments and is then as if nothing had happened: each task is granted once and done once.",
		run: func(e *claimEnv) {
			const workers, each = 4, 20
			ids := manyIDs("n", workers*each)
			e.put(tasks(ids, base)...)
			var failures, over atomic.Int64
			begun := make(chan struct{}, len(ids))
			var wg sync.WaitGroup
			for w := range workers {
				e.spawn(&wg, func() {
					defer over.Add(1)
					for _, id := range ids[w*each : (w+1)*each] {
						e.runOnce(id, func(err error) error {
							if err != nil {
								failures.Add(1)
							}
							return err
						})
						begun <- struct{}{}
					}
				})
			}
			for range len(ids) / 4 {
				<-begun
			}
			heal := e.breakIt()
			e.wait(func() bool { return failures.Load() >= workers || over.Load() == workers })
			heal()
			wg.Wait()
			e.backAgain()
			e.wantWaiting(endOfTime, "all done")
			for _, c := range e.claim(e.peer, e.lease(base.Add(time.Hour)), ids...) {
				e.wantVerdict(c, core.Gone, time.Time{}, "done")
			}
		},
	},
}

// runOnce claims and settles a task as core does, repeating what failed, of which
// seen is told. The task must be at its first attempt.
func (e *claimEnv) runOnce(id core.ID, seen func(error) error) {
	lease := e.lease(base)
	var got []core.Claimed
	err := e.insist(func() (err error) {
		got, err = e.c.Claim(e.ctx, []core.ID{id}, lease)
		if err == nil && len(got) == 1 && got[0].Verdict == core.Refused {
			err = errors.New("refused") // its row is locked by a connection that was cut
		}
		return seen(err)
	})
	if !assert.NoError(e, err, "Claim") {
		return
	}
	if len(got) != 1 || got[0].Verdict != core.Granted || got[0].Attempt != 1 {
		e.Errorf("%q: got %+v, want Granted with attempt 1", id, got)
		return
	}
	assert.NoError(e, tolerated(e.insistFree(func() error {
		return seen(e.c.Settle(e.ctx, at(1), []core.Settlement{{Grant: got[0].Grant, Outcome: core.Done}}))
	}), e.provides.KeepsFinished), "Settle")
}

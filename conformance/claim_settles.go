package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var outcomes = []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released}

var claimSettles = []testCase[*claimEnv]{
	{
		name: "settle/done",
		rule: "Done finishes the task: it is never granted again and never waits.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			c := e.grant(e.lease(base), "a")
			e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.Done})
			e.wantVerdict(e.claim(e.peer, e.lease(at(1_000_000)), "a")[0], core.Gone, time.Time{}, "long after")
			e.wantWaiting(at(1_000_000), "a done task")
		},
	},
	{
		name: "settle/retry",
		rule: "Retry makes the task pending again, due at Settlement.Due, which becomes its Task.Due; the attempt counts.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			c := e.grant(e.lease(base), "a")
			e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(5000), Err: "failed"})
			e.wantWaiting(at(1), "after the retry", core.Entry{ID: "a", Due: at(5000)})
			e.wantVerdict(e.claim(e.peer, e.lease(at(4999)), "a")[0], core.NotDue, at(5000), "a millisecond early")
			again := e.grant(e.lease(at(5000)), "a")
			e.wantTime(at(5000), again.Task.Due, "Task.Due")
			assert.Equal(e, e.attempt(2), again.Attempt, "Attempt")
			assert.Equal(e, 0, again.Crashes, "Crashes")
			assert.Equal(e, "payload of a", string(again.Task.Payload), "Payload")
		},
	},
	{
		name: "settle/released",
		rule: "Released gives the task back, pending again at Settlement.Due; the attempt is not counted and Task.Due stays.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			c := e.grant(e.lease(base), "a")
			e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.Released, Due: at(5000)})
			e.wantWaiting(at(1), "after the release", core.Entry{ID: "a", Due: at(5000)})
			e.wantVerdict(e.claim(e.peer, e.lease(at(4999)), "a")[0], core.NotDue, at(5000), "a millisecond early")
			again := e.grant(e.lease(at(5000)), "a")
			e.wantTime(base, again.Task.Due, "Task.Due")
			assert.Equal(e, e.attempt(1), again.Attempt, "Attempt")
			assert.Equal(e, 0, again.Crashes, "Crashes")
		},
	},
	{
		name: "settle/dead",
		rule: "DeadLetter gives the task up: it is never granted again and never waits.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			c := e.grant(e.lease(base), "a")
			e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.DeadLetter, Err: "no such account"})
			e.wantVerdict(e.claim(e.peer, e.lease(at(1_000_000)), "a")[0], core.Gone, time.Time{}, "long after")
			e.wantWaiting(at(1_000_000), "a dead task")
		},
	},
	{
		name: "settle/late",
		rule: "Settle decides by token and holder, not by time: the newest holder's late settle counts.",
		run: func(e *claimEnv) {
			var ids []core.ID
			for _, outcome := range outcomes {
				ids = append(ids, core.ID(outcome.String()))
			}
			e.put(tasks(ids, base)...)
			for i, c := range e.grantAll(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(10)}, ids...) {
				e.settle(at(900_000), core.Settlement{Grant: c.Grant, Outcome: outcomes[i], Due: dueOf(outcomes[i], at(900_000))})
			}
			e.wantWaiting(at(900_000), "settled long after the lease's end",
				core.Entry{ID: "Released", Due: at(900_000)}, core.Entry{ID: "Retry", Due: at(900_000)})
			for _, c := range e.grantAll(e.lease(at(900_000)), "Released", "Retry") {
				assert.Equal(e, 0, c.Crashes, "Crashes of %q: the lease ended, but its holder settled", c.ID)
			}
		},
	},
	{
		name: "settle/older-refused",
		rule: "An older holder's Settle fails with ErrLeaseLost, always, and leaves the newest holder's grant alone.",
		run: func(e *claimEnv) {
			for _, outcome := range outcomes {
				id := core.ID(outcome.String())
				e.put(task(id, base))
				old := e.grant(core.Lease{Holder: e.unique("old"), Now: base, DueBy: base, Until: at(10)}, id)
				now := e.grant(e.lease(at(11)), id)
				stale := core.Settlement{Grant: old.Grant, Outcome: outcome, Due: dueOf(outcome, at(12))}
				want := []refusal{{0, id, core.ErrLeaseLost}}
				e.wantRefusals(e.c.Settle(e.ctx, at(12), []core.Settlement{stale}), want, outcome.String()+" while the newest runs")
				e.wantVerdict(e.claim(e.c, e.lease(at(13)), id)[0], core.Held, now.At, "the newest holder's lease")
				e.settle(at(14), core.Settlement{Grant: now.Grant, Outcome: core.Retry, Due: at(20)})
				e.wantRefusals(e.c.Settle(e.ctx, at(15), []core.Settlement{stale}), want, outcome.String()+" after the newest settled")
				last := e.grant(e.lease(at(20)), id)
				assert.Equal(e, e.attempt(3), last.Attempt, "Attempt of %q", id)
				e.settle(at(21), core.Settlement{Grant: last.Grant, Outcome: core.Done})
				e.wantRefusals(e.c.Settle(e.ctx, at(22), []core.Settlement{stale}), want, outcome.String()+" after it is done")
			}
		},
	},
	{
		name: "settle/mixed-batch",
		rule: "A batch may mix outcomes, holders and due times; items that are lost fail in their places, all others take effect.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", 40)
			e.put(tasks(ids, base)...)
			now := base.Add(leaseFor + time.Millisecond)
			var settlements []core.Settlement
			var lost []refusal
			var waiting []core.Entry
			for i, id := range ids {
				c := e.grant(e.lease(base), id)
				outcome := outcomes[i%len(outcomes)]
				s := core.Settlement{Grant: c.Grant, Outcome: outcome, Due: dueOf(outcome, at(1000+i)), Err: fmt.Sprintf("error of %s", id)}
				if i%7 == 3 {
					s.Grant.Token--
					lost = append(lost, refusal{i, id, core.ErrLeaseLost})
				} else if !s.Due.IsZero() {
					waiting = append(waiting, core.Entry{ID: id, Due: s.Due})
				}
				settlements = append(settlements, s)
			}
			e.wantRefusals(e.c.Settle(e.ctx, at(1), settlements), lost, "Settle of a mixed batch")
			e.wantWaiting(at(1), "retried and released, each at its own time", waiting...)
			for i, c := range e.claim(e.c, e.lease(now), ids...) {
				switch {
				case i%7 == 3:
					e.wantVerdict(c, core.Granted, now.Add(leaseFor), "refused, and lapsed since")
					assert.Equal(e, 1, c.Crashes, "Crashes of %q", c.ID)
				case outcomes[i%4] == core.Done || outcomes[i%4] == core.DeadLetter:
					e.wantVerdict(c, core.Gone, time.Time{}, "finished")
				default:
					e.wantVerdict(c, core.Granted, now.Add(leaseFor), "goes on")
				}
			}
		},
	},
	{
		name: "settle/error-text",
		rule: "Err may hold any valid UTF-8 without NUL of up to 4 KiB.",
		run: func(e *claimEnv) {
			texts := []string{
				"", "plain", "it's \"quoted\" \\ `x` %s $1 ? :a {}", "line\nbreak\ttab\r", "größe 😀 \ufffd \x01",
				strings.Repeat("x", core.MaxErrorBytes), strings.Repeat("😀", core.MaxErrorBytes/4),
			}
			ids := manyIDs("n", len(texts))
			e.put(tasks(ids, base)...)
			var settlements []core.Settlement
			for i, c := range e.grantAll(e.lease(base), ids...) {
				settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(5), Err: texts[i]})
			}
			e.settle(at(1), settlements...)
			for i, c := range e.grantAll(e.lease(at(5)), ids...) {
				e.settle(at(6), core.Settlement{Grant: c.Grant, Outcome: core.DeadLetter, Err: texts[i]})
			}
			e.wantWaiting(at(6), "all dead")
		},
	},
}

var claimSettleRepeats = []testCase[*claimEnv]{
	{
		name: "settle/repeat",
		rule: "A repeat by the same holder of a task that it settled, and that nobody was granted or changed since, is a success that changes nothing.",
		run: func(e *claimEnv) {
			for _, outcome := range []core.Outcome{core.Retry, core.DeadLetter, core.Released} {
				id := core.ID(outcome.String())
				e.put(task(id, base))
				first := e.grant(e.lease(base), id)
				s := []core.Settlement{{Grant: first.Grant, Outcome: core.Retry, Due: at(5)}}
				e.settle(at(1), s...)
				second := e.grant(e.lease(at(5)), id)
				s = []core.Settlement{{Grant: second.Grant, Outcome: outcome, Due: dueOf(outcome, at(10)), Err: "x"}}
				for range 3 {
					require.NoError(e, e.peer.Settle(e.ctx, at(6), s), "Settle %s, repeated", outcome)
				}
				got := e.claim(e.c, e.lease(at(10)), id)[0]
				switch outcome {
				case core.DeadLetter:
					e.wantVerdict(got, core.Gone, time.Time{}, "settled three times")
				case core.Retry:
					assert.Equal(e, e.attempt(3), got.Attempt, "Attempt after Retry, sent three times")
				case core.Released:
					assert.Equal(e, e.attempt(2), got.Attempt, "Attempt after Released, sent three times")
				}
			}
		},
	},
	{
		name: "settle/repeat-done", needs: "KeepsFinished",
		rule: "Where done tasks are kept, a repeat of Settle with Done is a success that changes nothing.",
		run: func(e *claimEnv) {
			ids := []core.ID{"a", "b", "c"}
			e.put(tasks(ids, base)...)
			var settlements []core.Settlement
			for _, c := range e.grantAll(e.lease(base), ids...) {
				settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
			e.settle(at(1), settlements[:2]...)
			for range 2 {
				require.NoError(e, e.c.Settle(e.ctx, at(1), settlements), "Settle, two of three of them repeated")
			}
			e.wantWaiting(endOfTime, "all done")
		},
	},
	{
		name: "settle/repeat-done-deleted", needs: "!KeepsFinished",
		rule: "Where done tasks are deleted at once, a repeat of Settle with Done fails with ErrLeaseLost: the task is no longer there.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			s := []core.Settlement{{Grant: e.grant(e.lease(base), "a").Grant, Outcome: core.Done}}
			e.settle(at(1), s...)
			e.wantRefusals(e.c.Settle(e.ctx, at(1), s), []refusal{{0, "a", core.ErrLeaseLost}}, "the repeat")
		},
	},
	{
		name: "settle/repeat-after-grant",
		rule: "A repeat fails with ErrLeaseLost once the task was granted to somebody since, and leaves that grant alone.",
		run: func(e *claimEnv) {
			for _, outcome := range []core.Outcome{core.Retry, core.Released} {
				id := core.ID(outcome.String())
				e.put(task(id, base))
				first := e.grant(e.lease(base), id)
				s := []core.Settlement{{Grant: first.Grant, Outcome: outcome, Due: at(5)}}
				e.settle(at(1), s...)
				next := e.grant(e.lease(at(5)), id)
				e.wantRefusals(e.c.Settle(e.ctx, at(6), s), []refusal{{0, id, core.ErrLeaseLost}}, "the repeat of "+outcome.String())
				e.wantVerdict(e.claim(e.c, e.lease(at(7)), id)[0], core.Held, next.At, "the next holder's lease")
				e.settle(at(8), core.Settlement{Grant: next.Grant, Outcome: core.Done})
			}
		},
	},
	{
		name: "settle/no-second-thoughts",
		rule: "A task that its holder settled is not changed by another settlement under the same grant.",
		run: func(e *claimEnv) {
			for _, first := range outcomes {
				for _, second := range outcomes {
					id := core.ID(first.String() + " then " + second.String())
					e.put(task(id, base))
					c := e.grant(e.lease(base), id)
					e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: first, Due: dueOf(first, at(5))})
					// Whether it is refused is the store's choice; that it changes nothing is not.
					_ = e.c.Settle(e.ctx, at(2), []core.Settlement{{Grant: c.Grant, Outcome: second, Due: dueOf(second, at(9))}})
					got := e.claim(e.c, e.lease(at(4)), id)[0]
					if slices.Contains([]core.Outcome{core.Retry, core.Released}, first) {
						e.wantVerdict(got, core.NotDue, at(5), "after the first")
						again := e.grant(e.lease(at(5)), id)
						want := map[core.Outcome]int{core.Retry: 2, core.Released: 1}[first]
						assert.Equal(e, e.attempt(want), again.Attempt, "Attempt of %q", id)
					} else {
						e.wantVerdict(got, core.Gone, time.Time{}, "after the first")
					}
				}
			}
		},
	},
}

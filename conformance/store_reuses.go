package conformance

import (
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ends are the ways in which a task ends.
var ends = []string{"done", "dead", "cancelled"}

var storeReuses = []testCase[*storeEnv]{
	{
		name: "insert/replaces-finished",
		rule: "An id whose task is done, dead or cancelled is replaced: the new task has its own fields and its own counts.",
		run: func(e *storeEnv) {
			for _, end := range ends {
				id := core.ID(end)
				e.finish(id, end)
				fresh := core.Task{ID: id, Kind: "other", Payload: []byte("fresh"), Due: at(10), MaxAttempts: 3}
				e.insert(fresh)
				e.wantWaiting(at(5), end+", used again", core.Entry{ID: id, Due: at(10)})
				e.wantVerdict(e.claim(e.c, e.lease(at(9)), id)[0], core.NotDue, at(10), end+", used again")
				c := e.grant(e.lease(at(10)), id)
				assert.Equal(e, "other", c.Task.Kind, "Kind after %s", end)
				assert.Equal(e, "fresh", string(c.Task.Payload), "Payload after %s", end)
				assert.Empty(e, c.Task.Meta, "Meta after %s", end)
				assert.Equal(e, 3, c.Task.MaxAttempts, "MaxAttempts after %s", end)
				e.wantTime(at(10), c.Task.Due, "Task.Due after "+end)
				assert.Equal(e, 1, c.Attempt, "Attempt after %s", end)
				assert.Equal(e, 0, c.Crashes, "Crashes after %s", end)
				e.settle(at(11), core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
		},
	},
	{
		name: "token/rises-across-reuse",
		rule: "The token rises also after the id was finished, or its row deleted, and used again: at once, by any process, and whatever its producer takes for the time.",
		run: func(e *storeEnv) {
			stores := []core.Store{e.s, e.peerStore}
			for _, end := range ends {
				id, token := core.ID(end), int64(0)
				for round := range 30 {
					call := e.call(base.Add(-time.Duration(round%5) * time.Hour))
					require.NoError(e, stores[round%2].Insert(e.ctx, call, []core.Task{task(id, base)}), "Insert")
					for range 1 + round%3 { // a row's own tokens rise as well
						c := e.grant(e.lease(base), id)
						if c.Grant.Token <= token {
							e.Errorf("%s and used again, round %d: got token %d, want more than %d", end, round, c.Grant.Token, token)
						}
						token = c.Grant.Token
						e.settle(base, core.Settlement{Grant: c.Grant, Outcome: core.Released, Due: base})
					}
					e.endOf(id, end)
					if purger, ok := e.s.(core.Purger); ok && round%4 > 0 {
						_, err := purger.Purge(e.ctx, farAhead, 10)
						require.NoError(e, err, "Purge")
					}
				}
			}
		},
	},
	{
		name: "token/rises-without-clock",
		rule: "While the finished row is there the token rises from it, also where Call.Now stands still or steps back.",
		run: func(e *storeEnv) {
			list := ends
			if !e.provides.KeepsFinished {
				list = []string{"dead"} // the only one that is kept
			}
			for _, end := range list {
				id := core.ID(end)
				old := e.finish(id, end)
				require.NoError(e, e.s.Insert(e.ctx, e.call(base.Add(-time.Hour)), []core.Task{task(id, base)}))
				c := e.grant(e.lease(base), id)
				assert.Greater(e, c.Grant.Token, old.Token, "token after %s and a Call.Now an hour back", end)
			}
		},
	},
	{
		name: "token/old-grant-after-reuse",
		rule: "A grant of the old task is worth nothing on the new one of the same id: Extend and Settle fail with ErrLeaseLost, before and after it is granted.",
		run: func(e *storeEnv) {
			for _, end := range ends {
				id := core.ID(end)
				e.insert(task(id, base))
				old := e.grant(e.lease(base), id).Grant
				switch end {
				case "cancelled":
					e.cancel(e.s, base, id)
				case "done":
					e.settle(base, core.Settlement{Grant: old, Outcome: core.Done})
				case "dead":
					e.settle(base, core.Settlement{Grant: old, Outcome: core.DeadLetter})
				}
				require.NoError(e, e.s.Insert(e.ctx, e.call(at(1000)), []core.Task{task(id, base)}))
				refused := func(about string) {
					want := []refusal{{0, id, core.ErrLeaseLost}}
					e.wantRefusals(e.c.Extend(e.ctx, []core.Grant{old}, at(99_000)), want, end+": Extend "+about)
					for _, outcome := range outcomes {
						err := e.c.Settle(e.ctx, at(1001), []core.Settlement{{Grant: old, Outcome: outcome, Due: dueOf(outcome, at(9))}})
						e.wantRefusals(err, want, end+": "+outcome.String()+" "+about)
					}
				}
				refused("while the new task is pending")
				e.wantWaiting(at(1001), "the new task", core.Entry{ID: id, Due: base})
				now := e.grant(e.lease(at(1002)), id)
				refused("while the new task runs")
				e.wantVerdict(e.claim(e.c, e.lease(at(1003)), id)[0], core.Held, now.At, "the new task's holder")
				e.settle(at(1004), core.Settlement{Grant: now.Grant, Outcome: core.Done})
			}
		},
	},
	{
		name: "claim/holder-after-reuse",
		rule: "A repeat of an old Claim never finds the new task's grant as its own.",
		run: func(e *storeEnv) {
			e.insert(task("a", base))
			old := e.lease(base)
			c := e.grant(old, "a")
			e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: core.DeadLetter})
			e.insert(task("a", base))
			now := e.grant(e.lease(at(2)), "a")
			e.wantVerdict(e.claim(e.c, old, "a")[0], core.Held, now.At, "the old holder's repeat")
		},
	},
}

// endOf takes a task that waits to its end.
func (e *storeEnv) endOf(id core.ID, end string) {
	switch end {
	case "cancelled":
		e.cancel(e.s, base, id)
	case "done":
		e.settle(base, core.Settlement{Grant: e.grant(e.lease(base), id).Grant, Outcome: core.Done})
	case "dead":
		e.settle(base, core.Settlement{Grant: e.grant(e.lease(base), id).Grant, Outcome: core.DeadLetter})
	}
}

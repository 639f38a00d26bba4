package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeTxSettles = []testCase[*storeEnv]{
	{
		name: "tx/settle-both-or-none", needs: "Tx",
		rule: "A completion by SettleTx and the user's own writes are committed together or not at all.",
		run: func(e *storeEnv) {
			for _, outcome := range outcomes {
				id := core.ID(outcome.String())
				e.insert(task(id, base))
				c := e.grant(e.lease(base), id)
				s := core.Settlement{Grant: c.Grant, Outcome: outcome, Due: dueOf(outcome, at(5)), Err: "e"}
				tx := e.begin()
				require.NoError(e, tx.Write(e.ctx, "none of "+string(id)))
				require.NoError(e, tx.Settle(e.ctx, at(1), []core.Settlement{s}), "SettleTx with %s", outcome)
				e.end(tx, false)
				assert.False(e, e.wrote("none of "+string(id)), "the user's own write after a rollback")
				e.wantVerdict(e.claim(e.peer, e.lease(at(2)), id)[0], core.Held, c.At, "rolled back: as it was")

				tx = e.begin()
				require.NoError(e, tx.Write(e.ctx, "both of "+string(id)))
				require.NoError(e, tx.Settle(e.ctx, at(1), []core.Settlement{s}), "SettleTx with %s, in another transaction", outcome)
				e.end(tx, true)
				assert.True(e, e.wrote("both of "+string(id)), "the user's own write after the commit")
				got := e.claim(e.peer, e.lease(at(2)), id)[0]
				if s.Due.IsZero() {
					e.wantVerdict(got, core.Gone, time.Time{}, "committed")
				} else {
					e.wantVerdict(got, core.NotDue, at(5), "committed")
					again := e.grant(e.lease(at(5)), id)
					assert.Equal(e, map[core.Outcome]int{core.Retry: 2, core.Released: 1}[outcome], again.Attempt, "Attempt after %s", outcome)
					e.settle(at(6), core.Settlement{Grant: again.Grant, Outcome: core.Done})
				}
			}
		},
	},
	{
		name: "tx/settle-lost", needs: "Tx",
		rule: "SettleTx refuses a grant that is no longer the newest with ErrLeaseLost, in its place, and leaves the transaction as it can be rolled back or committed.",
		run: func(e *storeEnv) {
			for key, commit := range map[string]bool{"rolled back": false, "committed": true} {
				ids := []core.ID{core.ID("taken " + key), core.ID("mine " + key)}
				e.insert(tasks(ids, base)...)
				old := e.grantAll(core.Lease{Holder: e.unique("old"), Now: base, DueBy: base, Until: at(10)}, ids...)
				now := e.grant(e.lease(at(11)), ids[0])
				tx := e.begin()
				require.NoError(e, tx.Write(e.ctx, "before, "+key))
				err := tx.Settle(e.ctx, at(12), []core.Settlement{{Grant: old[0].Grant, Outcome: core.Done}, {Grant: old[1].Grant, Outcome: core.Done}})
				e.wantRefusals(err, []refusal{{0, ids[0], core.ErrLeaseLost}}, "SettleTx of one that was taken over and one that was not")
				require.NoError(e, tx.Write(e.ctx, "after, "+key), "a write after the refusal")
				e.end(tx, commit)
				assert.Equal(e, []bool{commit, commit}, []bool{e.wrote("before, " + key), e.wrote("after, " + key)}, "the user's own writes, %s", key)
				got := e.claim(e.peer, e.lease(at(13)), ids...)
				e.wantVerdict(got[0], core.Held, now.At, "the newest holder's lease")
				if commit {
					e.wantVerdict(got[1], core.Gone, time.Time{}, "the other one, "+key)
				} else {
					e.wantVerdict(got[1], core.Granted, at(13).Add(leaseFor), "the other one, "+key)
				}
			}
		},
	},
	{
		name: "tx/settle-checks", needs: "Tx",
		rule: "SettleTx checks and rounds its input: what is invalid or comes twice fails with ErrInvalid, due times are rounded up, and an Err with bytes that no text column takes fails nothing.",
		run: func(e *storeEnv) {
			ids := manyIDs("n", 4)
			e.insert(tasks(ids, base)...)
			got := e.grantAll(e.lease(base), ids...)
			odd := at(5).Add(time.Nanosecond)
			tx := e.begin()
			err := tx.Settle(e.ctx, at(1).Add(time.Microsecond), []core.Settlement{
				{Grant: got[0].Grant, Outcome: core.Retry, Due: odd, Err: "nul \x00, bad \xff, " + strings.Repeat("é", core.MaxErrorBytes)},
				{Grant: got[1].Grant, Outcome: core.Retry},
				{Grant: got[2].Grant, Outcome: 9},
				{Grant: got[0].Grant, Outcome: core.Done},
				{Grant: got[3].Grant, Outcome: core.Released, Due: odd},
			})
			e.wantRefusals(err, []refusal{{1, ids[1], core.ErrInvalid}, {2, ids[2], core.ErrInvalid}, {3, ids[0], core.ErrInvalid}}, "SettleTx of two good ones and three bad ones")
			e.end(tx, true)
			e.wantWaiting(at(1), "rounded up", core.Entry{ID: ids[0], Due: at(6)}, core.Entry{ID: ids[3], Due: at(6)})
			for i, c := range e.grantAll(e.lease(at(6)), ids[0], ids[3]) {
				e.wantTime([]time.Time{at(6), base}[i], c.Task.Due, "Task.Due of item %d", i)
			}
		},
	},
	{
		name: "tx/settle-repeat", needs: "Tx",
		rule: "SettleTx refuses what this very call didn't make with ErrLeaseLost, in its place, also where the same grant made it, in an earlier transaction or in this one: else a handler that runs again after a commit of unknown outcome would write twice. The task stays as it was, and the transaction can be rolled back or committed; a repeat by Settle is a success.",
		run: func(e *storeEnv) {
			var ids []core.ID
			for _, outcome := range outcomes {
				ids = append(ids, core.ID(outcome.String()))
			}
			e.insert(append(tasks(ids, base), task("more", base))...)
			got := e.grantAll(e.lease(base), append(ids, "more")...)
			var first []core.Settlement
			var repeated []refusal
			for i, outcome := range outcomes {
				first = append(first, core.Settlement{Grant: got[i].Grant, Outcome: outcome, Due: dueOf(outcome, at(5)), Err: "e"})
				repeated = append(repeated, refusal{i, ids[i], core.ErrLeaseLost})
			}
			tx := e.begin()
			require.NoError(e, tx.Write(e.ctx, "first"))
			require.NoError(e, tx.Settle(e.ctx, at(1), first))
			e.wantRefusals(tx.Settle(e.ctx, at(1), first), repeated, "SettleTx, once more in the same transaction")
			e.end(tx, true)
			assert.True(e, e.wrote("first"), "the user's own write")

			// The handler runs once more, now with one that wasn't settled yet.
			more := got[len(ids)]
			again := append(slices.Clone(first), core.Settlement{Grant: more.Grant, Outcome: core.Done})
			for _, commit := range []bool{false, true} {
				tx = e.begin()
				require.NoError(e, tx.Write(e.ctx, "again"))
				e.wantRefusals(tx.Settle(e.ctx, at(2), again), repeated, "SettleTx, again in another transaction, and of one more")
				e.end(tx, commit)
				assert.Equal(e, commit, e.wrote("again"), "the user's own write")
				if !commit {
					e.wantVerdict(e.claim(e.peer, e.lease(at(3)), "more")[0], core.Held, more.At, "one more, rolled back")
				}
			}
			for i, s := range first {
				tx = e.begin()
				e.wantRefusals(tx.Settle(e.ctx, at(2), []core.Settlement{s}), []refusal{{0, ids[i], core.ErrLeaseLost}}, "SettleTx of "+string(ids[i])+" alone, again")
				e.end(tx, false)
				if s.Outcome != core.Done || e.provides.KeepsFinished {
					e.settle(at(2), s)
				}
			}
			e.wantWaiting(at(3), "after the repeats", core.Entry{ID: "Released", Due: at(5)}, core.Entry{ID: "Retry", Due: at(5)})
			for _, c := range e.claim(e.peer, e.lease(at(4)), "Done", "DeadLetter", "more") {
				e.wantVerdict(c, core.Gone, time.Time{}, "after the repeats")
			}
			for i, c := range e.grantAll(e.lease(at(5)), "Released", "Retry") {
				assert.Equal(e, i+1, c.Attempt, "Attempt of %q", c.ID)
			}
		},
	},
	{
		name: "tx/settle-fences", needs: "Tx",
		rule: "From SettleTx until the commit nobody is granted the task, also where its lease ends meanwhile: one completion, by the holder who committed.",
		run: func(e *storeEnv) {
			e.insert(task("a", base))
			c := e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(10)}, "a")
			tx := e.begin()
			require.NoError(e, tx.Write(e.ctx, "effect"))
			require.NoError(e, tx.Settle(e.ctx, at(9), []core.Settlement{{Grant: c.Grant, Outcome: core.Done}}))
			lease := e.lease(at(20))
			if got := e.soonAnswered(lease, "a"); got != nil && got.Verdict == core.Granted {
				e.Errorf("got Granted after the lease's end, while the holder's completion waits for its commit; want Refused or an error")
			}
			e.end(tx, true)
			assert.True(e, e.wrote("effect"), "the user's own write")
			var got []core.Claimed
			require.NoError(e, e.insist(func() (err error) { got, err = e.peer.Claim(e.ctx, []core.ID{"a"}, lease); return err }), "Claim after the commit")
			e.wantVerdict(got[0], core.Gone, time.Time{}, "after the commit")
		},
	},
	{
		name: "tx/large-batch", needs: "Tx",
		rule: "InsertTx and SettleTx take slices of any length, and name each failure by its place.",
		run: func(e *storeEnv) {
			ids := manyIDs("n", e.scale(1001, 201))
			tx := e.begin()
			require.NoError(e, tx.Insert(e.ctx, e.call(base), tasks(ids, base)))
			e.end(tx, true)
			// Most of what is settled isn't there: a long batch that costs little.
			absent := manyIDs("absent", 1500)
			var settlements []core.Settlement
			var lost []refusal
			last := len(ids) - 1
			for i, c := range e.grantAll(e.lease(base), ids...) {
				if i == last {
					for _, id := range absent {
						lost = append(lost, refusal{len(settlements), id, core.ErrLeaseLost})
						settlements = append(settlements, core.Settlement{Grant: core.Grant{ID: id, Token: 1, Holder: c.Grant.Holder}, Outcome: core.Done})
					}
					lost = append(lost, refusal{len(settlements), c.ID, core.ErrLeaseLost})
					c.Grant.Token--
				}
				settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
			tx = e.begin()
			e.wantRefusals(tx.Settle(e.ctx, at(1), settlements), lost, "SettleTx of many")
			e.end(tx, true)
			e.wantWaiting(base.Add(time.Hour), "all but one are done", core.Entry{ID: ids[last], Due: base})
		},
	},
}

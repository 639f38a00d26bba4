package conformance

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// begin starts a transaction that is over when the case is.
func (e *storeEnv) begin() Tx {
	tx := e.beginTx(e.s)
	e.cleanup(tx.Rollback)
	return tx
}

// end commits the transaction or gives it up.
func (e *storeEnv) end(tx Tx, commit bool) {
	if commit {
		require.NoError(e, tx.Commit(e.ctx), "Commit")
	} else {
		tx.Rollback()
	}
}

// soonAnswered is a Claim that may find its rows locked: the answer, nil where
// its ctx ended meanwhile.
func (e *storeEnv) soonAnswered(lease core.Lease, id core.ID) *core.Claimed {
	var got []core.Claimed
	err := e.within(func(ctx context.Context) (err error) {
		got, err = e.peer.Claim(ctx, []core.ID{id}, lease)
		return err
	})
	if err != nil {
		return nil
	}
	e.wantForm(got, lease, []core.ID{id})
	return &got[0]
}

var storeTxInserts = []testCase[*storeEnv]{
	{
		name: "tx/insert", needs: "Tx",
		rule: "What InsertTx stores is there when the transaction commits, together with the user's own writes, and with a rollback nothing is.",
		run: func(e *storeEnv) {
			for key, commit := range map[string]bool{"rolled back": false, "committed": true} {
				id := core.ID(key)
				tx := e.begin()
				require.NoError(e, tx.Write(e.ctx, key))
				require.NoError(e, tx.Insert(e.ctx, e.call(base), tasks([]core.ID{id, id + "2"}, at(5))))
				e.end(tx, commit)
				assert.Equal(e, commit, e.wrote(key), "whether the user's own write is there, %s", key)
				if commit {
					e.wantWaiting(at(5), key, core.Entry{ID: id, Due: at(5)}, core.Entry{ID: id + "2", Due: at(5)})
					c := e.grant(e.lease(at(5)), id)
					assert.Equal(e, "payload of "+key, string(c.Task.Payload), "Payload")
					e.settle(at(6), core.Settlement{Grant: c.Grant, Outcome: core.Done})
					e.settle(at(6), core.Settlement{Grant: e.grant(e.lease(at(5)), id+"2").Grant, Outcome: core.Done})
				} else {
					e.wantWaiting(at(5), key)
					e.wantVerdict(e.claim(e.c, e.lease(at(5)), id)[0], core.Gone, time.Time{}, key)
					e.insert(task(id, at(5))) // the id is free
					e.settle(at(6), core.Settlement{Grant: e.grant(e.lease(at(5)), id).Grant, Outcome: core.Done})
				}
			}
		},
	},
	{
		name: "tx/unseen-before-commit", needs: "Tx",
		rule: "Before the commit nobody sees what InsertTx stored: it doesn't wait and isn't granted.",
		run: func(e *storeEnv) {
			tx := e.begin()
			require.NoError(e, tx.Insert(e.ctx, e.call(base), []core.Task{task("a", base)}))
			e.wantWaiting(base, "before the commit")
			lease := e.lease(base)
			if got := e.soonAnswered(lease, "a"); got != nil && got.Verdict != core.Gone && got.Verdict != core.Refused {
				e.Errorf("before the commit: got %s, want Gone, Refused or an error", got.Verdict)
			}
			e.end(tx, true)
			e.wantVerdict(e.claimInsisting(e.peer, lease, []core.ID{"a"})[0], core.Granted, lease.Until, "after the commit")
		},
	},
	{
		name: "tx/late-commit", needs: "Tx",
		rule: "A task with an early due time that is committed late, after sweeps have seen later ones, is found by the next sweep from the start.",
		run: func(e *storeEnv) {
			later := core.Entry{ID: "later", Due: at(100)}
			e.insert(task(later.ID, later.Due))
			tx := e.begin()
			require.NoError(e, tx.Insert(e.ctx, e.call(base), []core.Task{task("early", at(1))}))
			e.wantWaiting(at(200), "before the commit", later)
			page, err := e.c.Waiting(e.ctx, at(200), later, endOfTime, 10)
			require.NoError(e, err)
			e.wantEntries(nil, page, "after the last one")
			e.end(tx, true)
			for _, c := range []core.Claimer{e.c, e.peer} {
				page, err = c.Waiting(e.ctx, at(200), core.Entry{}, endOfTime, 10)
				require.NoError(e, err)
				e.wantEntries([]core.Entry{{ID: "early", Due: at(1)}, later}, page, "the next sweep from the start")
			}
		},
	},
	{
		name: "tx/insert-refusals", needs: "Tx",
		rule: "InsertTx checks its input: ids that are live fail with ErrExists, tasks that are invalid or come twice with ErrInvalid, in their places; the transaction goes on and can be committed with the others.",
		run: func(e *storeEnv) {
			e.insert(task("live", base))
			early := task("early", time.Time{})
			tx := e.begin()
			require.NoError(e, tx.Write(e.ctx, "before"))
			err := tx.Insert(e.ctx, e.call(base), []core.Task{
				task("new1", at(1)), task("live", at(2)), task(" bad", at(3)), early, task("new2", at(4)), task("new1", at(5)),
			})
			e.wantRefusals(err, []refusal{
				{1, "live", core.ErrExists}, {2, " bad", core.ErrInvalid}, {3, "early", core.ErrInvalid}, {5, "new1", core.ErrInvalid},
			}, "InsertTx of two good ones and four bad ones")
			require.NoError(e, tx.Write(e.ctx, "after"), "a write after the refusals")
			e.end(tx, true)
			assert.True(e, e.wrote("before") && e.wrote("after"), "the user's own writes are there")
			e.wantWaiting(at(9), "the good ones", core.Entry{ID: "live", Due: base}, core.Entry{ID: "new1", Due: at(1)}, core.Entry{ID: "new2", Due: at(4)})
		},
	},
	{
		name: "tx/insert-rounds-up", needs: "Tx",
		rule: "InsertTx rounds due times up to the millisecond, never down: no task starts early.",
		run: func(e *storeEnv) {
			tx := e.begin()
			require.NoError(e, tx.Insert(e.ctx, e.call(base), []core.Task{
				task("a", at(1).Add(time.Nanosecond)), task("b", at(2).Add(999_999*time.Nanosecond)), task("c", at(3)),
				task("d", at(3).Add(400*time.Microsecond).In(time.FixedZone("X", 3600))),
			}))
			e.end(tx, true)
			e.wantWaiting(at(9), "rounded up", core.Entry{ID: "a", Due: at(2)}, core.Entry{ID: "b", Due: at(3)}, core.Entry{ID: "c", Due: at(3)}, core.Entry{ID: "d", Due: at(4)})
		},
	},
	{
		name: "tx/insert-repeat", needs: "Tx",
		rule: "A repeat of InsertTx with the same call.ID, after a commit whose outcome was unknown, recognises the earlier success and changes nothing.",
		run: func(e *storeEnv) {
			call, list := e.call(base), tasks([]core.ID{"a", "b"}, at(1))
			for i := range 3 {
				tx := e.begin()
				require.NoError(e, tx.Insert(e.ctx, call, list), "InsertTx, try %d", i+1)
				require.NoError(e, tx.Insert(e.ctx, call, list), "InsertTx, once more in the same transaction")
				e.end(tx, true)
				if i == 0 {
					e.settle(at(2), core.Settlement{Grant: e.grant(e.lease(at(1)), "a").Grant, Outcome: core.Retry, Due: at(7)})
				}
			}
			require.NoError(e, e.s.Insert(e.ctx, call, list), "Insert with that call")
			e.wantWaiting(at(9), "after the repeats", core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "a", Due: at(7)})
		},
	},
	{
		name: "tx/insert-replaces", needs: "Tx",
		rule: "InsertTx replaces a finished task like Insert, and with a rollback leaves it as it was.",
		run: func(e *storeEnv) {
			for _, end := range ends {
				id := core.ID(end)
				old := e.finish(id, end)
				for _, commit := range []bool{false, true} {
					tx := e.begin()
					require.NoError(e, tx.Insert(e.ctx, e.call(at(1)), []core.Task{task(id, at(5))}))
					e.end(tx, commit)
					verdict := e.claim(e.c, e.lease(at(4)), id)[0]
					if commit {
						e.wantVerdict(verdict, core.NotDue, at(5), end+", replaced")
						c := e.grant(e.lease(at(5)), id)
						assert.Greater(e, c.Grant.Token, old.Token, "Token after %s", end)
						e.settle(at(6), core.Settlement{Grant: c.Grant, Outcome: core.Done})
					} else {
						e.wantVerdict(verdict, core.Gone, time.Time{}, end+", rolled back")
					}
				}
			}
		},
	},
	{
		name: "tx/empty-and-done", needs: "Tx",
		rule: "InsertTx and SettleTx do nothing for an empty slice, and return an error where the Call is invalid or ctx is already done.",
		run: func(e *storeEnv) {
			tx := e.begin()
			require.NoError(e, tx.Insert(e.ctx, e.call(base), nil), "InsertTx of nothing")
			require.NoError(e, tx.Settle(e.ctx, base, nil), "SettleTx of nothing")
			require.NoError(e, tx.Write(e.ctx, "k"))
			e.end(tx, true)
			assert.True(e, e.wrote("k"), "the user's own write is there")
			for _, call := range []core.Call{{Now: base}, {ID: "c"}, {ID: "c d", Now: base}, {ID: "c\x00", Now: base}} {
				tx = e.begin()
				require.ErrorIs(e, tx.Insert(e.ctx, call, []core.Task{task("a", base)}), core.ErrInvalid, "InsertTx with the call %+v", call)
				e.end(tx, false)
			}
			tx = e.begin()
			require.ErrorIs(e, tx.Insert(done(), e.call(base), []core.Task{task("a", base)}), context.Canceled, "InsertTx with a done ctx")
			e.end(tx, true)
			e.wantWaiting(base, "nothing was inserted")
			e.insert(task("b", base))
			b := e.grant(e.lease(base), "b")
			tx = e.begin()
			require.ErrorIs(e, tx.Settle(done(), at(1), []core.Settlement{{Grant: b.Grant, Outcome: core.Done}}), context.Canceled, "SettleTx with a done ctx")
			e.end(tx, true)
			e.wantVerdict(e.claim(e.c, e.lease(at(1)), "b")[0], core.Held, b.At, "nothing was settled")
		},
	},
}

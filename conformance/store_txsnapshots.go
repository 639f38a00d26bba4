package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Not for a store in which a transaction that has written keeps all others from the
// whole file: there is nothing to Lock in it.
var storeTxSnapshots = []testCase[*storeEnv]{
	{
		name: "tx/insert-leaves-live-alone", needs: "Tx Lock",
		rule: "A live task that InsertTx refused is not locked: heartbeat and Settle go on while the transaction is open.",
		run: func(e *storeEnv) {
			e.insert(task("a", base), task("b", base))
			got := e.grantAll(e.lease(base), "a", "b")
			tx := e.begin()
			e.wantRefusals(tx.Insert(e.ctx, e.call(at(1)), []core.Task{task("a", at(5)), task("b", at(5))}), []refusal{
				{0, "a", core.ErrExists}, {1, "b", core.ErrExists},
			}, "InsertTx of two live ones")
			assert.NoError(e, e.unhindered(func(ctx context.Context) error {
				return e.c.Extend(ctx, []core.Grant{got[0].Grant, got[1].Grant}, at(90_000))
			}), "Extend while the transaction is open")
			assert.NoError(e, e.unhindered(func(ctx context.Context) error {
				return e.peer.Settle(ctx, at(2), []core.Settlement{{Grant: got[0].Grant, Outcome: core.Done}})
			}), "Settle while the transaction is open")
			e.end(tx, true)
			verdicts := e.claim(e.peer, e.lease(at(60_000)), "a", "b")
			e.wantVerdict(verdicts[0], core.Gone, time.Time{}, "the one that was settled")
			e.wantVerdict(verdicts[1], core.Held, at(90_000), "the one that was extended")
		},
	},
	{
		name: "tx/settle-lost-after-snapshot", needs: "Tx Lock",
		rule: "SettleTx refuses a grant that was taken over after the transaction had read something with ErrLeaseLost, in its place, or fails so that the transaction can't go on; it never succeeds and never says ErrBusy.",
		run: func(e *storeEnv) {
			e.insert(task("a", base))
			old := e.grant(core.Lease{Holder: e.unique("old"), Now: base, DueBy: base, Until: at(10)}, "a")
			lease, tx := e.lease(at(20)), e.begin()
			require.NoError(e, tx.Write(e.ctx, "k"))
			taken := e.claim(e.peer, lease, "a")[0]
			err := tx.Settle(e.ctx, at(21), []core.Settlement{{Grant: old.Grant, Outcome: core.Done}})
			e.wantVerdict(taken, core.Granted, lease.Until, "a lease that ended, with a transaction open elsewhere")
			e.wantOutdated(tx, err, "a", core.ErrLeaseLost, "SettleTx of a grant that was taken over after the snapshot")
			e.wantVerdict(e.claim(e.c, e.lease(at(22)), "a")[0], core.Held, lease.Until, "the newest holder's lease")
		},
	},
	{
		name: "tx/insert-exists-after-snapshot", needs: "Tx Lock",
		rule: "InsertTx refuses an id that became live after the transaction had read something with ErrExists, in its place, or fails so that the transaction can't go on; it never succeeds and never says ErrBusy.",
		run: func(e *storeEnv) {
			tx := e.begin()
			require.NoError(e, tx.Write(e.ctx, "k"))
			require.NoError(e, e.peerStore.Insert(e.ctx, e.call(base), []core.Task{task("a", at(5))}), "Insert outside, with a transaction open elsewhere")
			err := tx.Insert(e.ctx, e.call(base), []core.Task{task("a", at(9))})
			e.wantOutdated(tx, err, "a", core.ErrExists, "InsertTx of an id that became live after the snapshot")
			e.wantWaiting(base, "as it was inserted outside", core.Entry{ID: "a", Due: at(5)})
		},
	},
}

// wantOutdated fails unless err, of a method in tx on one task, is the refusal or
// one after which the transaction can't go on; tx is over then.
func (e *storeEnv) wantOutdated(tx Tx, err error, id core.ID, refused error, about string) {
	var batch *core.BatchError
	switch {
	case err == nil, errors.As(err, &batch), errors.Is(err, core.ErrBusy):
		e.wantRefusals(err, []refusal{{0, id, refused}}, about)
		e.end(tx, true)
		assert.True(e, e.wrote("k"), "%s: the user's own write after the refusal", about)
	default:
		e.end(tx, false)
		assert.False(e, e.wrote("k"), "%s: the user's own write after a rollback", about)
	}
}

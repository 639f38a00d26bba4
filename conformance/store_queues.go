package conformance

import (
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// next is e with the handle on a neighbouring queue in the place of its own.
func (e *storeEnv) next() *storeEnv {
	n := *e
	n.claimEnv = e.claimEnv.next()
	n.s = n.c.(core.Store)
	n.peerStore = n.s
	return &n
}

var storeQueues = []testCase[*storeEnv]{
	{
		name: "queue/changes", needs: "Neighbour",
		rule: apart + " and the same Call: Insert, Cancel and Reschedule.",
		run: func(e *storeEnv) {
			n := e.next()
			e.changesApart(n, "1")
			n.changesApart(e, "2") // the other way round
		},
	},
	{
		name: "queue/purge", needs: "Neighbour Purger",
		rule: apart + ": Purge deletes finished rows of its own queue, and counts them.",
		run: func(e *storeEnv) {
			n := e.next()
			for _, pair := range [][2]*storeEnv{{e, n}, {n, e}} {
				x, y := pair[0], pair[1]
				for _, env := range pair {
					env.finish("done", "done")
					env.finish("cancelled", "cancelled")
				}
				x.finish("here only", "done")
				x.insert(task("older", base), task("oldest", base))
				x.cancel(x.s, base, "older", "oldest")
				y.insert(task("here only", base), task("pending", base))
				kept := x.provides.KeepsFinished
				// No room in the limit is lost to older rows of the other queue.
				assert.Equal(e, map[bool]int{true: 2}[kept], y.purge(base.Add(time.Hour), 2), "rows purged")
				assert.Equal(e, 0, y.purgeAll(), "rows purged by a repeat")
				y.wantWaiting(base, "after its purge", core.Entry{ID: "here only", Due: base}, core.Entry{ID: "pending", Due: base})
				assert.Equal(e, map[bool]int{true: 5}[kept], x.purgeAll(), "rows purged in the other queue")
				y.wantFates(at(9), "the other queue", []core.ID{"here only", "pending"}, core.Cancelled, core.Cancelled)
				y.purgeAll()
			}
		},
	},
	{
		name: "queue/tx", needs: "Neighbour Tx",
		rule: apart + ", the same Call and the same grants: InsertTx and SettleTx.",
		run: func(e *storeEnv) {
			n := e.next()
			e.txsApart(n, "1")
			n.txsApart(e, "2")
		},
	},
}

// changesApart changes tasks in e's queue; n's has the same ones.
func (e *storeEnv) changesApart(n *storeEnv, round string) {
	id := func(name string) core.ID { return core.ID(round + name) }
	call := e.call(base)
	ids := []core.ID{id("cancelled"), id("dead"), id("done"), id("moved"), id("running")}
	for queue, env := range map[string]*storeEnv{"mine": e, "the other": n} {
		require.NoError(e, env.s.Insert(e.ctx, call, payloadOf(queue, tasks(ids, base))), "Insert")
	}
	lease := e.lease(base)
	got := e.grantAll(lease, ids[1], ids[2], ids[4])
	e.settle(at(1), core.Settlement{Grant: got[0].Grant, Outcome: core.DeadLetter}, core.Settlement{Grant: got[1].Grant, Outcome: core.Done})
	e.wantFates(at(1), "in this queue", ids[:1], core.Cancelled)
	require.NoError(e, e.s.Reschedule(e.ctx, core.Call{Now: at(1)}, []core.Move{{ID: ids[3], From: base, To: at(9)}}), "Reschedule")
	untouched := []core.Entry{{ID: ids[0], Due: base}, {ID: ids[1], Due: base}, {ID: ids[2], Due: base}, {ID: ids[3], Due: base}, {ID: ids[4], Due: base}}
	n.wantWaitingOf(round, at(2), "the other queue", untouched...)

	// Each queue answers by its own rows.
	n.wantRefusals(n.s.Insert(e.ctx, e.call(at(2)), tasks(ids[:3], at(3))), []refusal{
		{0, ids[0], core.ErrExists}, {1, ids[1], core.ErrExists}, {2, ids[2], core.ErrExists},
	}, "Insert of what is finished in this queue and pending in the other one, there")
	e.wantRefusals(e.s.Reschedule(e.ctx, core.Call{Now: at(2)}, []core.Move{{ID: ids[1], To: at(9)}, {ID: ids[3], From: base, To: at(8)}, {ID: ids[4], To: at(9)}}), []refusal{
		{0, ids[1], core.ErrNotPending}, {1, ids[3], core.ErrMoved}, {2, ids[4], core.ErrNotPending},
	}, "Reschedule of what is pending at its old time in the other queue")
	require.NoError(e, n.s.Reschedule(e.ctx, core.Call{Now: at(2)}, []core.Move{{ID: ids[3], From: base, To: at(20)}}), "Reschedule in the other queue")
	untouched[3] = untouched[4]
	untouched[4] = core.Entry{ID: ids[3], Due: at(20)}

	// A finished task is used again in its own queue only.
	again := e.call(at(3))
	require.NoError(e, e.s.Insert(e.ctx, again, tasks(ids[:3], at(30))), "Insert over what is finished")
	require.NoError(e, e.s.Insert(e.ctx, again, tasks(ids[:3], at(30))), "the repeat")
	n.wantWaitingOf(round, at(4), "the other queue", untouched...)
	e.wantWaitingOf(round, at(4), "this queue", core.Entry{ID: ids[3], Due: at(9)},
		core.Entry{ID: ids[0], Due: at(30)}, core.Entry{ID: ids[1], Due: at(30)}, core.Entry{ID: ids[2], Due: at(30)})

	n.insert(task(id("theirs"), at(25)))
	e.wantFates(at(5), "in this queue", append(ids, id("theirs")), core.Cancelled, core.Cancelled, core.Cancelled, core.Cancelled, core.WasRunning, core.Unknown)
	n.wantWaitingOf(round, at(6), "the other queue", append(untouched, core.Entry{ID: id("theirs"), Due: at(25)})...)
	for _, c := range n.grantAll(core.Lease{Holder: lease.Holder, Now: at(25), DueBy: at(25), Until: at(50)}, ids...) {
		assert.Equal(e, 1, c.Attempt, "Attempt of %q in the other queue", c.ID)
		assert.Equal(e, "the other", string(c.Task.Payload), "Payload of %q in the other queue", c.ID)
	}
	e.wantWaitingOf(round, at(60), "this queue in the end")
}

// txsApart works in transactions on e's queue; n's has the same tasks.
func (e *storeEnv) txsApart(n *storeEnv, round string) {
	id := func(name string) core.ID { return core.ID(round + name) }
	call := e.call(base)
	ids := []core.ID{id("Done"), id("Retry"), id("DeadLetter"), id("Released"), id("replaced"), id("held")}
	lease := e.lease(base)
	var got, others []core.Claimed
	for queue, env := range map[string]*storeEnv{"mine": e, "the other": n} {
		require.NoError(e, env.s.Insert(e.ctx, call, payloadOf(queue, tasks(ids, base))), "Insert")
	}
	got, others = e.grantAll(lease, ids...), n.grantAll(lease, ids...)
	e.settle(at(1), core.Settlement{Grant: got[4].Grant, Outcome: core.DeadLetter})
	n.insert(task(id("theirs"), at(60)))

	var settlements []core.Settlement
	for i, outcome := range outcomes {
		settlements = append(settlements, core.Settlement{Grant: got[i].Grant, Outcome: outcome, Due: dueOf(outcome, at(70))})
	}
	again := e.call(at(2))
	tx := e.begin()
	require.NoError(e, tx.Insert(e.ctx, again, []core.Task{task(ids[4], at(65)), task(id("theirs"), at(65)), task(id("unknown"), at(65))}),
		"InsertTx of what is finished, or unknown, in this queue and live, or unknown, in the other one")
	require.NoError(e, tx.Settle(e.ctx, at(2), settlements), "SettleTx")
	e.wantRefusals(tx.Settle(e.ctx, at(2), settlements[1:]), []refusal{
		{0, ids[1], core.ErrLeaseLost}, {1, ids[2], core.ErrLeaseLost}, {2, ids[3], core.ErrLeaseLost},
	}, "the repeat")
	e.end(tx, true)

	n.wantWaitingOf(round, at(3), "the other queue", core.Entry{ID: id("theirs"), Due: at(60)})
	for _, c := range n.claim(n.c, e.lease(at(40)), ids...) {
		n.wantVerdict(c, core.Held, lease.Until, "the other queue")
	}
	e.wantWaitingOf(round, at(3), "this queue", core.Entry{ID: ids[4], Due: at(65)}, core.Entry{ID: id("theirs"), Due: at(65)}, core.Entry{ID: id("unknown"), Due: at(65)},
		core.Entry{ID: ids[3], Due: at(70)}, core.Entry{ID: ids[1], Due: at(70)})
	e.wantVerdict(e.claim(e.c, e.lease(at(40)), ids[0])[0], core.Gone, time.Time{}, "this queue")

	settlements = nil
	for _, c := range others {
		settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Done})
	}
	tx = n.begin()
	n.wantRefusals(tx.Insert(e.ctx, again, []core.Task{task(id("theirs"), at(65))}), []refusal{{0, id("theirs"), core.ErrExists}},
		"InsertTx in the other queue under a Call that made the id in this one")
	n.wantRefusals(tx.Settle(e.ctx, at(4), []core.Settlement{{Grant: got[5].Grant, Outcome: core.Done}}), []refusal{{0, ids[5], core.ErrLeaseLost}},
		"SettleTx in the other queue by a grant of this one")
	require.NoError(e, tx.Settle(e.ctx, at(4), settlements), "SettleTx in the other queue")
	n.end(tx, true)
	e.wantVerdict(e.claim(e.c, e.lease(at(40)), ids[5])[0], core.Held, lease.Until, "this queue")
	e.wantWaitingOf(round, at(5), "this queue in the end", core.Entry{ID: ids[4], Due: at(65)}, core.Entry{ID: id("theirs"), Due: at(65)}, core.Entry{ID: id("unknown"), Due: at(65)},
		core.Entry{ID: ids[3], Due: at(70)}, core.Entry{ID: ids[1], Due: at(70)})
}

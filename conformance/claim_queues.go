package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// next is e with the handle on a neighbouring queue in the place of its own.
func (e *claimEnv) next() *claimEnv {
	n := *e
	n.c = e.neighbour()
	n.peer = n.c
	n.put = func(tasks ...core.Task) { e.putIn(n.c, tasks) }
	return &n
}

// payloadOf has the payloads of tasks tell which queue they are of.
func payloadOf(queue string, list []core.Task) []core.Task {
	for i := range list {
		list[i].Payload = []byte(queue)
	}
	return list
}

// wantWaitingOf is wantWaiting for the ids with a prefix.
func (e *claimEnv) wantWaitingOf(prefix string, now time.Time, about string, want ...core.Entry) {
	got := slices.DeleteFunc(e.waiting(now), func(entry core.Entry) bool { return !strings.HasPrefix(string(entry.ID), prefix) })
	e.wantEntries(want, got, "%s: waiting rows", about)
}

const apart = "No call of one queue sees or changes a task of another, also with the same ids"

var claimQueues = []testCase[*claimEnv]{
	{
		name: "queue/claims", needs: "Neighbour",
		rule: apart + ", the same holder and the same tokens: Claim, Extend, Settle and Waiting.",
		run: func(e *claimEnv) {
			n := e.next()
			e.claimsApart(n, "1")
			n.claimsApart(e, "2") // the other way round
		},
	},
}

// claimsApart goes through the life of tasks in e's queue that are granted in n's.
func (e *claimEnv) claimsApart(n *claimEnv, round string) {
	id := func(name string) core.ID { return core.ID(round + name) }
	held := []core.ID{id("Done"), id("Retry"), id("DeadLetter"), id("Released"), id("extended")}
	pending := core.Entry{ID: id("pending"), Due: at(50)}
	for queue, env := range map[string]*claimEnv{"mine": e, "the other": n} {
		env.put(payloadOf(queue, append(tasks(held, base), task(pending.ID, pending.Due)))...)
	}
	n.put(payloadOf("the other", []core.Task{task(id("theirs"), at(60))})...)
	theirs := core.Entry{ID: id("theirs"), Due: at(60)}

	lease := e.lease(base)
	got := e.grantAll(lease, held...)
	e.wantVerdict(e.claim(e.c, lease, theirs.ID)[0], core.Gone, time.Time{}, "a task of the other queue")
	others := n.grantAll(lease, held...)
	for i := range held {
		assert.Equal(e, "mine", string(got[i].Task.Payload), "Payload of %q", held[i])
		assert.Equal(e, "the other", string(others[i].Task.Payload), "Payload of %q in the other queue", held[i])
		assert.Equal(e, 1, others[i].Attempt, "Attempt of %q in the other queue, granted here under the same holder", held[i])
	}

	require.NoError(e, e.c.Extend(e.ctx, []core.Grant{got[4].Grant}, at(90_000)), "Extend")
	var settlements []core.Settlement
	for i, outcome := range outcomes {
		settlements = append(settlements, core.Settlement{Grant: got[i].Grant, Outcome: outcome, Due: dueOf(outcome, at(70)), Err: "e"})
	}
	e.settle(at(1), settlements...)
	e.settle(at(1), settlements[1:]...) // recognised by what is in this queue
	ended := []core.Grant{got[0].Grant, got[1].Grant}
	e.wantRefusals(e.c.Extend(e.ctx, ended, at(95_000)), []refusal{{0, held[0], core.ErrLeaseLost}, {1, held[1], core.ErrLeaseLost}},
		"Extend of what is settled here and held there")

	// A grant of this queue is worth nothing in the other one, and leaves its own task alone.
	stray := []refusal{{0, held[4], core.ErrLeaseLost}}
	n.wantRefusals(n.c.Extend(n.ctx, []core.Grant{got[4].Grant}, at(99_000)), stray, "Extend in the other queue by a grant of this one")
	n.wantRefusals(n.c.Settle(n.ctx, at(1), []core.Settlement{{Grant: got[4].Grant, Outcome: core.Done}}), stray, "Settle in the other queue by a grant of this one")

	n.wantWaitingOf(round, at(2), "the other queue", pending, theirs)
	for _, c := range n.claim(n.c, e.lease(at(40)), held...) {
		n.wantVerdict(c, core.Held, lease.Until, "the other queue")
	}
	n.wantVerdict(n.claim(n.c, e.lease(at(40)), pending.ID)[0], core.NotDue, pending.Due, "the other queue")
	e.wantWaitingOf(round, at(2), "this queue", pending, core.Entry{ID: held[3], Due: at(70)}, core.Entry{ID: held[1], Due: at(70)})
	wants := []struct {
		verdict core.Verdict
		at      time.Time
	}{{core.Gone, time.Time{}}, {core.NotDue, at(70)}, {core.Gone, time.Time{}}, {core.NotDue, at(70)}, {core.Held, at(90_000)}}
	for i, c := range e.claim(e.c, e.lease(at(40)), held...) {
		e.wantVerdict(c, wants[i].verdict, wants[i].at, "this queue")
	}

	// What the others hold is theirs still, with their tokens and counts.
	settlements = nil
	for _, c := range others {
		settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(80)})
	}
	n.settle(at(3), settlements...)
	for _, c := range n.grantAll(e.lease(at(80)), held...) {
		assert.Equal(e, e.attempt(2), c.Attempt, "Attempt of %q in the other queue after a Retry", c.ID)
		assert.Equal(e, 0, c.Crashes, "Crashes of %q in the other queue", c.ID)
	}
	e.wantWaitingOf(round, at(4), "this queue in the end", pending, core.Entry{ID: held[3], Due: at(70)}, core.Entry{ID: held[1], Due: at(70)})
}

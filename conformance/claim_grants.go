package conformance

import (
	"bytes"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var claimGrants = []testCase[*claimEnv]{
	{
		name: "claim/granted",
		rule: "A pending task that is due is granted, with its task as it was stored, the lease's end, attempt 1 and no crash.",
		run: func(e *claimEnv) {
			want := e.kept(task("a", base))
			e.put(task("a", base))
			lease := e.lease(at(5))
			got := e.grant(lease, "a")
			e.wantTime(base, got.Task.Due, "Task.Due")
			got.Task.Due = want.Due
			assert.Equal(e, want, got.Task, "Task")
			assert.Equal(e, e.attempt(1), got.Attempt, "Attempt")
			assert.Equal(e, 0, got.Crashes, "Crashes")
			assert.Positive(e, got.Grant.Token, "Token")
			e.wantWaiting(at(5), "a granted task")
		},
	},
	{
		name: "claim/fields",
		rule: "Kind, payload, meta and MaxAttempts come back byte for byte: empty, with NUL, with every byte, and at their limits.",
		run: func(e *claimEnv) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			list := []core.Task{
				{ID: "zero"},
				{ID: "empty", Payload: []byte{}, Meta: []byte{}},
				{ID: "nul", Payload: []byte{0}, Meta: []byte{0, 0}, MaxAttempts: 1},
				{ID: "every", Payload: every, Meta: bytes.Repeat(every, 2), MaxAttempts: 1 << 30},
				{ID: "text", Payload: []byte("Ωß😀'\"\\`%_\r\n\t "), Meta: []byte("\\x41\\101"), Kind: "größe 😀 'k\"\\`%_ "},
				{ID: "case", Kind: "Mail to ÄDA and äda"},
				{ID: "spaces", Kind: " k ", Payload: []byte("  p  "), Meta: []byte(" ")},
				{ID: "limits", Kind: strings.Repeat("k", core.MaxKindBytes), Payload: bytes.Repeat([]byte{0xff, 0x00, 0x27, 0x5c}, core.MaxPayloadBytes/4), Meta: bytes.Repeat([]byte{0xfe}, core.MaxMetaBytes)},
				{ID: "limits in characters", Kind: strings.Repeat("😀", core.MaxKindBytes/4)},
			}
			var ids []core.ID
			for i := range list {
				list[i].Due = base
				ids = append(ids, list[i].ID)
			}
			e.put(list...)
			for i, got := range e.grantAll(e.lease(base), ids...) {
				want := e.kept(list[i])
				assert.Equal(e, want.Kind, got.Task.Kind, "Kind of %q", want.ID)
				assert.Equal(e, want.MaxAttempts, got.Task.MaxAttempts, "MaxAttempts of %q", want.ID)
				assert.True(e, bytes.Equal(want.Payload, got.Task.Payload), "Payload of %q: got %d bytes, want the %d that were stored", want.ID, len(got.Task.Payload), len(want.Payload))
				assert.True(e, bytes.Equal(want.Meta, got.Task.Meta), "Meta of %q: got %d bytes, want the %d that were stored", want.ID, len(got.Task.Meta), len(want.Meta))
			}
		},
	},
	{
		name: "claim/large-bytes",
		rule: "A batch may have any number of bytes: adapters split it to their own limits.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", e.scale(17, 3)) // 17 MiB: more than MariaDB takes in one packet
			list := tasks(ids, base)
			noise := make([]byte, core.MaxPayloadBytes+len(ids))
			for i := range noise {
				noise[i] = byte(i * 31 >> 3)
			}
			for i := range list {
				list[i].Payload = noise[i : i+core.MaxPayloadBytes]
			}
			e.put(list...)
			assert.Len(e, e.waiting(base), len(ids), "stored")
			some := []int{0, len(ids) / 2, len(ids) - 1} // each costs a megabyte on its way back
			for i, got := range e.grantAll(e.lease(base), ids[some[0]], ids[some[1]], ids[some[2]]) {
				assert.True(e, bytes.Equal(list[some[i]].Payload, got.Task.Payload), "payload of %q: got %d bytes, want the 1 MiB that was stored", got.ID, len(got.Task.Payload))
			}
		},
	},
	{
		name: "claim/order-of-ids",
		rule: "Claim returns one verdict for each id, in the order of ids, each with the right At.",
		run: func(e *claimEnv) {
			e.put(task("due", base), task("later", at(5000)), task("held", base), task("done", base), task("dead", base), task("lapsed", base), task("also", base))
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(777)}, "held")
			e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(50)}, "lapsed")
			for i, c := range e.grantAll(e.lease(base), "done", "dead") {
				e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: []core.Outcome{core.Done, core.DeadLetter}[i]})
			}
			lease := e.lease(at(100))
			got := e.claim(e.peer, lease, "lapsed", "unknown", "held", "due", "done", "later", "dead", "also")
			for i, want := range []struct {
				verdict core.Verdict
				at      time.Time
			}{
				{core.Granted, lease.Until},
				{core.Gone, time.Time{}},
				{core.Held, at(777)},
				{core.Granted, lease.Until},
				{core.Gone, time.Time{}},
				{core.NotDue, at(5000)},
				{core.Gone, time.Time{}},
				{core.Granted, lease.Until},
			} {
				e.wantVerdict(got[i], want.verdict, want.at, "claimed in a mixed batch")
			}
		},
	},
	{
		name: "claim/due-by",
		rule: "A task is granted when its due time is at or before DueBy, a later one is answered NotDue and stays as it was.",
		run: func(e *claimEnv) {
			e.put(task("a", at(1000)), task("b", at(1001)))
			lease := core.Lease{Holder: e.unique("ahead"), Now: base, DueBy: at(1000), Until: at(9000)}
			got := e.claim(e.c, lease, "a", "b")
			e.wantVerdict(got[0], core.Granted, at(9000), "due at DueBy, which is after Now")
			e.wantVerdict(got[1], core.NotDue, at(1001), "due a millisecond after DueBy")
			e.wantWaiting(at(1000), "b", core.Entry{ID: "b", Due: at(1001)})
			again := e.grant(e.lease(at(1001)), "b")
			assert.Equal(e, e.attempt(1), again.Attempt, "Attempt: a NotDue is none")
		},
	},
	{
		name: "claim/never-before-lease-end",
		rule: "A running task may be granted again only when its lease ended before Now: at its very end it is Held, a millisecond later over.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			first := core.Lease{Holder: e.unique("first"), Now: base, DueBy: base, Until: at(1000)}
			e.grant(first, "a")
			for _, now := range []time.Time{base, at(500), at(999), at(1000)} {
				e.wantVerdict(e.claim(e.peer, e.lease(now), "a")[0], core.Held, at(1000), "at "+stamp(now))
			}
			lease := e.lease(at(1001))
			e.wantVerdict(e.claim(e.peer, lease, "a")[0], core.Granted, lease.Until, "a millisecond after the end")
		},
	},
	{
		name: "claim/take-over-by-now",
		rule: "Whether a lease is over is decided by Lease.Now, not by DueBy and not by a clock.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			e.grant(core.Lease{Holder: e.unique("first"), Now: base, DueBy: base, Until: at(1000)}, "a")
			got := e.claim(e.c, core.Lease{Holder: e.unique("second"), Now: at(1000), DueBy: at(5000), Until: at(9000)}, "a")
			e.wantVerdict(got[0], core.Held, at(1000), "DueBy is past the lease's end, Now is not")
			// Long ago and far ahead: a store that reads a clock shows in one of them.
			for i, then := range []time.Time{longAgo, farAhead} {
				id := manyIDs("n", 2)[i]
				e.put(task(id, then))
				e.grant(core.Lease{Holder: e.unique("first"), Now: then, DueBy: then, Until: then.Add(time.Minute)}, id)
				got = e.claim(e.c, core.Lease{Holder: e.unique("second"), Now: then.Add(time.Second), DueBy: endOfTime, Until: endOfTime}, id)
				e.wantVerdict(got[0], core.Held, then.Add(time.Minute), "a lease of "+stamp(then)+", a second later")
				got = e.claim(e.c, core.Lease{Holder: e.unique("third"), Now: then.Add(time.Hour), DueBy: then, Until: then.Add(2 * time.Hour)}, id)
				e.wantVerdict(got[0], core.Granted, then.Add(2*time.Hour), "a lease of "+stamp(then)+", an hour later")
			}
		},
	},
	{
		name: "claim/take-over",
		rule: "A take-over is a grant like any other: new token and holder, the task's Due unchanged, one more attempt, one more crash.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			token := int64(0)
			now := base
			for n := range 4 {
				c := e.grant(e.lease(now), "a")
				assert.Equal(e, n+1, c.Attempt, "Attempt at grant %d", n+1)
				assert.Equal(e, n, c.Crashes, "Crashes at grant %d", n+1)
				assert.Greater(e, c.Grant.Token, token, "Token at grant %d", n+1)
				e.wantTime(base, c.Task.Due, "Task.Due at grant %d", n+1)
				assert.Equal(e, "payload of a", string(c.Task.Payload), "Payload at grant %d", n+1)
				token = c.Grant.Token
				now = c.At.Add(time.Millisecond)
			}
		},
	},
	{
		name: "claim/gone",
		rule: "A task that is unknown, done or dead is Gone, whatever the lease.",
		run: func(e *claimEnv) {
			e.put(task("done", base), task("dead", base))
			got := e.grantAll(e.lease(base), "done", "dead")
			e.settle(at(1), core.Settlement{Grant: got[0].Grant, Outcome: core.Done}, core.Settlement{Grant: got[1].Grant, Outcome: core.DeadLetter, Err: "x"})
			for _, lease := range []core.Lease{
				e.lease(base), e.lease(at(1_000_000)),
				{Holder: got[0].Grant.Holder, Now: base, DueBy: base, Until: base.Add(leaseFor)}, // a late repeat of the claim
			} {
				for _, c := range e.claim(e.peer, lease, "unknown", "done", "dead") {
					e.wantVerdict(c, core.Gone, time.Time{}, "claimed by "+lease.Holder)
				}
			}
		},
	},
	{
		name: "claim/repeat",
		rule: "A repeat with the same Holder finds what the first call was granted, as it was stored, and is granted what it had missed.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("b", base), task("c", base))
			lease := e.lease(base)
			first := e.grantAll(lease, "a", "b")
			again := e.grantAll(lease, "a", "b", "c")
			assert.Equal(e, first, again[:2], "the repeat's answers for what was granted already")
			assert.Equal(e, 1, again[2].Attempt, "what had been missed is granted")
			third, err := e.peer.Claim(e.ctx, []core.ID{"c", "b", "a"}, lease)
			require.NoError(e, err)
			assert.Equal(e, []core.Claimed{again[2], again[1], again[0]}, third, "a third time, from another handle, in another order")
		},
	},
	{
		name: "claim/repeat-lapsed",
		rule: "A repeat with the same Holder finds its grant as it was stored also where that lease has ended meanwhile, as long as nobody else was granted the task.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			lease := e.lease(base)
			first := e.grant(lease, "a")
			late := lease
			late.Now, late.DueBy, late.Until = at(100_000), at(100_000), at(200_000)
			again := e.claim(e.c, late, "a")[0]
			assert.Equal(e, first, again, "the repeat, long after the lease's end")
			e.settle(at(100_001), core.Settlement{Grant: first.Grant, Outcome: core.Done})
		},
	},
	{
		name: "claim/repeat-too-late",
		rule: "A repeat with the same Holder is no grant once the task was granted to somebody else.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			lease := core.Lease{Holder: e.unique("first"), Now: base, DueBy: base, Until: at(1000)}
			e.grant(lease, "a")
			other := e.grant(e.lease(at(1001)), "a")
			e.wantVerdict(e.claim(e.c, lease, "a")[0], core.Held, other.At, "the first holder's repeat")
			e.settle(at(1002), core.Settlement{Grant: other.Grant, Outcome: core.Done})
		},
	},
	{
		name: "claim/counts",
		rule: "Attempt counts the grants that were not released, this one included; Crashes those of them whose lease ran out.",
		run: func(e *claimEnv) {
			e.put(task("a", base))
			now := base
			claim := func(about string, attempt, crashes int) core.Grant {
				c := e.grant(e.lease(now), "a")
				assert.Equal(e, attempt, c.Attempt, "Attempt %s", about)
				assert.Equal(e, crashes, c.Crashes, "Crashes %s", about)
				return c.Grant
			}
			end := func(g core.Grant, outcome core.Outcome) {
				now = now.Add(time.Second)
				e.settle(now, core.Settlement{Grant: g, Outcome: outcome, Due: now, Err: "x"})
			}
			end(claim("at first", 1, 0), core.Retry)
			end(claim("after a retry", 2, 0), core.Released)
			end(claim("after a release", 2, 0), core.Released)
			claim("after two releases", 2, 0)
			now = now.Add(2 * leaseFor) // it crashes
			end(claim("after a crash", 3, 1), core.Released)
			end(claim("after a take-over was released", 3, 1), core.Retry)
			claim("after a retry", 4, 1)
			now = now.Add(2 * leaseFor)
			claim("after a second crash", 5, 2)
		},
	},
}

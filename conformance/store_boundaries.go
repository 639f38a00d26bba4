package conformance

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/core"
)

var storeBoundaries = []testCase[*storeEnv]{
	{
		name: "batch/at-every-boundary-store",
		rule: "A slice may have any length: every item of Reschedule and Cancel takes effect, each failure and fate is in its place.",
		run: func(e *storeEnv) {
			for _, n := range e.lengths() {
				ids, rows := few(n)
				e.insert(tasks(rows, base)...)
				moves := make([]core.Move, n)
				var failed []refusal
				var left []core.Entry
				for place, id := range ids {
					moves[place] = core.Move{ID: id, From: base, To: at(500)}
					_, there := slices.BinarySearch(rows, id)
					switch {
					case !there:
						failed = append(failed, refusal{place, id, core.ErrNotPending})
					case odd(place, n):
						moves[place].From = at(1)
						failed = append(failed, refusal{place, id, core.ErrMoved})
						left = append(left, core.Entry{ID: id, Due: base})
					default:
						left = append(left, core.Entry{ID: id, Due: at(500)})
					}
				}
				e.wantRefusals(e.s.Reschedule(e.ctx, core.Call{Now: base}, moves), failed, fmt.Sprintf("Reschedule of %d", n))
				e.wantWaiting(base, fmt.Sprintf("after a Reschedule of %d", n), byDue(left)...)
				for place, fate := range e.cancel(e.s, at(1), ids...) {
					want := core.Unknown
					if _, there := slices.BinarySearch(rows, ids[place]); there {
						want = core.Cancelled
					}
					if fate != want {
						e.Errorf("Cancel of %d: item %d: got %s, want %s", n, place, fate, want)
					}
				}
				e.wantWaiting(base, fmt.Sprintf("after a Cancel of %d", n))
			}
		},
	},
	{
		name: "insert/at-every-boundary",
		rule: "Insert takes a slice of any length: every task is stored, each one that is live already is named by its place.",
		run: func(e *storeEnv) {
			ids := manyIDs("live", e.scale(2101, 501))
			e.insert(tasks(ids, at(9))...)
			var want []core.Entry
			for _, n := range []int{len(ids), len(ids) / 2} {
				list := tasks(ids[:n], base)
				_, rows := few(n)
				for i, place := range borders(n) {
					list[place] = task(rows[i], base)
					want = append(want, core.Entry{ID: rows[i], Due: base})
				}
				var failed []refusal
				for place, t := range list {
					if t.ID == ids[place] {
						failed = append(failed, refusal{place, t.ID, core.ErrExists})
					}
				}
				e.wantRefusals(e.s.Insert(e.ctx, e.call(base), list), failed, fmt.Sprintf("Insert of %d", n))
			}
			got, err := e.peer.Waiting(e.ctx, base, core.Entry{}, at(9), 10_000)
			if err != nil {
				e.Errorf("Waiting: %v", err)
			}
			e.wantEntries(byDue(want), got, "what was inserted")
		},
	},
	{
		name: "batch/heavy",
		rule: "A batch of large payloads may have any number of bytes; every item takes effect, a failure is named by its place.",
		run: func(e *storeEnv) {
			// Megabytes beyond any limit at which an adapter may cut a batch by its bytes.
			ids := manyIDs("n", e.scale(30, 4))
			live := len(ids) / 2
			list, want := tasks(ids, base), make([]core.Entry, len(ids))
			noise := make([]byte, 300<<10+2*len(ids))
			for i := range noise {
				noise[i] = byte(i * 31 >> 3)
			}
			e.insert(list[live])
			for i, id := range ids {
				want[i] = core.Entry{ID: id, Due: base}
				if i != live {
					list[i].Payload = noise[i : i+300<<10+i]
				}
			}
			heavy := slices.Clone(list)
			heavy[live].Payload = noise
			e.wantRefusals(e.s.Insert(e.ctx, e.call(base), heavy), []refusal{{live, ids[live], core.ErrExists}}, "Insert of many bytes")
			e.wantWaiting(base, "all of them", want...)
			for i, c := range e.grantAll(e.lease(base), ids...) {
				if !bytes.Equal(c.Task.Payload, list[i].Payload) {
					e.Errorf("payload of item %d: got %d bytes, want the %d that were stored", i, len(c.Task.Payload), len(list[i].Payload))
				}
			}
		},
	},
}

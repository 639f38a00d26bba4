package conformance

import (
	"bytes"
	"fmt"

	"github.com/dueclaim/dueclaim/core"
)

// longPayload is some kilobytes that differ from task to task at every place: what a
// driver copies when it is short it may well pass on when it is long.
func longPayload(id core.ID) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("<%s>", id)), 4<<10/(len(id)+2))
}

// wantPayloads fails where an answer's payload isn't its task's.
func (e *claimEnv) wantPayloads(about string, got ...core.Claimed) {
	for _, c := range got {
		want := longPayload(c.ID)
		if !bytes.Equal(want, c.Task.Payload) {
			at := 0
			for at < min(len(want), len(c.Task.Payload)) && want[at] == c.Task.Payload[at] {
				at++
			}
			e.Errorf("payload of %q %s: got other bytes from the %d. on (%d in all), want the %d that were stored", c.ID, about, at+1, len(c.Task.Payload), len(want))
		}
	}
}

var claimMemory = []testCase[*claimEnv]{
	{
		name: "contract/memory-is-the-callers",
		rule: "What is passed in and what is returned is the caller's to write to, also where it is long: no store keeps it, hands it out twice, or writes to it later.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", 12)
			list := tasks(ids, base)
			for i := range list {
				list[i].Payload = longPayload(ids[i])
			}
			e.put(list...)
			for i := range list {
				clear(list[i].Payload)
				clear(list[i].Meta)
			}
			scrawl := func(got []core.Claimed) { // all of it, and what is allocated behind it
				for _, c := range got {
					clear(c.Task.Payload[:cap(c.Task.Payload)])
					clear(c.Task.Meta[:cap(c.Task.Meta)])
				}
			}
			lease := e.lease(base)
			got := e.grantAll(lease, ids...)
			e.wantPayloads("after the caller wrote to what it had passed in", got...)
			again := e.grantAll(lease, ids...)
			scrawl(got)
			e.wantPayloads("in the answer to a repeat, after the caller wrote to the first answer", again...)
			scrawl(again[:6])
			e.wantPayloads("after the caller wrote to others of the same answer", again[6:]...)

			kept := again[6:]
			var settlements []core.Settlement
			for _, c := range again {
				settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(1)})
			}
			e.settle(at(1), settlements...)
			others := tasks(manyIDs("other", 12), base)
			for i := range others {
				others[i].Payload = longPayload(others[i].ID)
			}
			e.put(others...)
			var done []core.Settlement
			for _, c := range e.grantAll(e.lease(at(1)), manyIDs("other", 12)...) {
				done = append(done, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
			e.settle(at(2), done...)
			e.wantPayloads("of an answer, after later calls", kept...)
			e.wantPayloads("in the store, after the caller wrote to earlier answers", e.grantAll(e.lease(at(2)), ids...)...)
		},
	},
}

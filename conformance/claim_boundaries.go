package conformance

import (
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/core"
)

// lengths are those of batches at, next to and beyond the round numbers and
// powers of two at which an adapter may cut them; the longest crosses them all.
var lengths = []int{255, 256, 257, 500, 501, 1000, 1024, 2501}

// lengths returns the lengths to try.
func (e *claimEnv) lengths() []int {
	if e.variant {
		return []int{501, 1000}
	}
	return lengths
}

// borders returns the places in a batch of n items at which something may go
// wrong: its ends, its middle, and both sides of each cut. Only these have rows
// in the cases below, which makes a long batch cheap.
func borders(n int) []int {
	places := []int{0, n / 2, n - 2, n - 1}
	for _, cut := range []int{256, 500, 1000, 1024, 2000, 2048} {
		if cut < n {
			places = append(places, cut-1, cut)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// odd tells whether an item with a row is to fail: next to the last one where a
// cut may come right at the end, else at both ends and in the middle.
func odd(place, n int) bool {
	if n%2 == 0 {
		return place == n-2
	}
	return place == 0 || place == n/2 || place == n-1
}

// few returns the ids of a batch of n and which of them have rows.
func few(n int) (ids, rows []core.ID) {
	ids = manyIDs(fmt.Sprint("of", n), n)
	for _, place := range borders(n) {
		rows = append(rows, ids[place])
	}
	return ids, rows
}

var claimBoundaries = []testCase[*claimEnv]{
	{
		name: "batch/at-every-boundary",
		rule: "A slice may have any length: every item of Claim, Extend and Settle is answered or takes effect, each failure is named by its place.",
		run: func(e *claimEnv) {
			var left []core.Entry
			for _, n := range e.lengths() {
				ids, rows := few(n)
				e.put(tasks(rows, base)...)
				lease := e.lease(base)
				got := e.claim(e.c, lease, ids...)
				grants, settlements := make([]core.Grant, n), make([]core.Settlement, n)
				var lost []refusal
				for place, id := range ids {
					_, there := slices.BinarySearch(rows, id)
					want := core.Gone
					grants[place] = core.Grant{ID: id, Token: 1, Holder: lease.Holder}
					if there {
						want, grants[place] = core.Granted, got[place].Grant
					}
					if got[place].Verdict != want {
						e.Errorf("Claim of %d: item %d: got %s, want %s", n, place, got[place].Verdict, want)
					}
					if there && odd(place, n) {
						grants[place].Holder = "somebody"
					}
					if !there || odd(place, n) {
						lost = append(lost, refusal{place, id, core.ErrLeaseLost})
					} else {
						left = append(left, core.Entry{ID: id, Due: at(70_000)})
					}
					settlements[place] = core.Settlement{Grant: grants[place], Outcome: core.Retry, Due: at(70_000)}
				}
				e.wantRefusals(e.c.Extend(e.ctx, grants, at(60_000)), lost, fmt.Sprintf("Extend of %d", n))
				for i, c := range e.claim(e.peer, e.lease(at(1)), rows...) {
					want := at(60_000)
					if odd(borders(n)[i], n) {
						want = lease.Until
					}
					e.wantVerdict(c, core.Held, want, fmt.Sprintf("after an Extend of %d", n))
				}
				e.wantRefusals(e.c.Settle(e.ctx, at(1), settlements), lost, fmt.Sprintf("Settle of %d", n))
			}
			e.wantWaiting(at(1), "what was settled", byDue(left)...)
		},
	},
}

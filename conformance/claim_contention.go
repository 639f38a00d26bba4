package conformance

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contenders is how many goroutines compete, spread over contendHandles handles.
const (
	contenders     = 16
	contendHandles = 8
)

var claimContention = []testCase[*claimEnv]{
	{
		name: "claim/one-winner",
		rule: "One holder for each (id, token): of any number of contenders for a pending task exactly one is granted it.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", e.scale(1000, 200))
			e.put(tasks(ids, base)...)
			e.wantOneWinner(ids, e.contend(ids, func() core.Lease { return e.lease(base) }), 1, 0)
		},
	},
	{
		name: "claim/take-over-one-winner",
		rule: "Of any number of contenders for a task whose lease has ended exactly one is granted it.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", e.scale(200, 60))
			e.put(tasks(ids, base)...)
			old := e.grantAll(e.lease(base), ids...)
			now := base.Add(leaseFor + time.Millisecond)
			e.wantOneWinner(ids, e.contend(ids, func() core.Lease { return e.lease(now) }), 2, 1)
			for i, c := range old {
				err := e.c.Settle(e.ctx, now, []core.Settlement{{Grant: c.Grant, Outcome: core.Done}})
				e.wantRefusals(err, []refusal{{0, ids[i], core.ErrLeaseLost}}, "the old holder's Settle")
				if i == 10 {
					break // each costs a round trip
				}
			}
		},
	},
	{
		name: "claim/against-settle",
		rule: "A take-over and the old holder's Settle exclude each other: exactly one takes effect.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", e.scale(120, 60))
			e.put(tasks(ids, base)...)
			byID := map[core.ID]core.Settlement{}
			for _, c := range e.grantAll(e.lease(base), ids...) {
				byID[c.ID] = core.Settlement{Grant: c.Grant, Outcome: core.Done}
			}
			now := base.Add(leaseFor + time.Millisecond)
			settled, taken := map[core.ID]bool{}, map[core.ID]core.Grant{}
			e.collide(ids, func(chunk []core.ID) {
				var some []core.Settlement
				for _, id := range chunk {
					some = append(some, byID[id])
				}
				for _, id := range e.settleInsisting(e.c, some) {
					settled[id] = true
				}
			}, func(chunk []core.ID) {
				for _, c := range e.claimInsisting(e.peer, e.lease(now), chunk) {
					if c.Verdict == core.Granted {
						taken[c.ID] = c.Grant
					}
				}
			})
			var winners []core.Settlement // of the take-overs, who really hold their tasks
			for _, id := range ids {
				grant, ok := taken[id]
				switch {
				case settled[id] && ok:
					e.Errorf("%q was settled by its old holder and granted to another; want one of them", id)
				case !settled[id] && !ok && e.provides.KeepsFinished:
					// Without kept rows a repeat after a lost reply can't tell.
					e.Errorf("%q was neither settled nor granted; want one of them", id)
				case ok:
					winners = append(winners, core.Settlement{Grant: grant, Outcome: core.Done})
				}
			}
			e.settle(now, winners...)
			e.wantWaiting(endOfTime, "in the end")
		},
	},
	{
		name: "contract/concurrent",
		rule: "All methods may be called concurrently, from any number of processes; no call's effect is lost.",
		run: func(e *claimEnv) {
			const workers = 8
			each := e.scale(25, 10)
			handles := e.handles(contendHandles)
			var mine [workers][]core.ID
			for w := range workers {
				mine[w] = manyIDs(string(rune('a'+w)), each)
				e.put(tasks(mine[w], base)...)
			}
			var wg sync.WaitGroup
			for w := range workers {
				e.spawn(&wg, func() {
					c := handles[w%len(handles)]
					for range 2 {
						var grants []core.Grant
						var settlements []core.Settlement
						for _, got := range e.claimInsisting(c, e.lease(base), mine[w]) {
							require.Equal(e, core.Granted.String(), got.Verdict.String(), got.ID)
							grants = append(grants, got.Grant)
							settlements = append(settlements, core.Settlement{Grant: got.Grant, Outcome: core.Retry, Due: base, Err: "again"})
						}
						require.NoError(e, e.insistFree(func() error { return c.Extend(e.ctx, grants, at(60_000)) }), "Extend")
						require.NoError(e, e.insist(func() error {
							_, err := c.Waiting(e.ctx, base, core.Entry{}, at(1), 10)
							return err
						}), "Waiting")
						require.NoError(e, e.insistFree(func() error { return c.Settle(e.ctx, at(1), settlements) }), "Settle")
					}
				})
			}
			wg.Wait()
			assert.Len(e, e.waiting(at(1)), workers*each, "all wait again")
			for w := range workers {
				for _, c := range e.grantAll(e.lease(at(1)), mine[w]...) {
					assert.Equal(e, e.attempt(3), c.Attempt, "Attempt of %q after two retries", c.ID)
				}
			}
		},
	},
}

// claimInsisting repeats a Claim until its outcome is known, and what was
// refused because somebody had locked it.
func (e *claimEnv) claimInsisting(c core.Claimer, lease core.Lease, ids []core.ID) []core.Claimed {
	got := make([]core.Claimed, len(ids))
	left := ids // in mode StatusUpdated a repeat doesn't find what was granted
	err := e.insist(func() error {
		some, err := c.Claim(e.ctx, left, lease)
		if err != nil {
			return err
		}
		e.wantForm(some, lease, left)
		left = nil
		for _, c := range some {
			got[slices.Index(ids, c.ID)] = c
			if c.Verdict == core.Refused {
				left = append(left, c.ID)
			}
		}
		if len(left) > 0 {
			return errors.New("some ids were Refused")
		}
		return nil
	})
	require.NoError(e, err, "Claim")
	return got
}

// settleInsisting repeats a Settle until its outcome is known, and what failed
// because somebody had locked it, and returns the ids for which it took effect.
// The others must have lost their leases.
func (e *claimEnv) settleInsisting(c core.Claimer, settlements []core.Settlement) (settled []core.ID) {
	err := e.insistFree(func() error { return c.Settle(e.ctx, base, settlements) })
	for i, s := range settlements {
		switch itemErr := errorOf(err, i); {
		case itemErr == nil:
			settled = append(settled, s.Grant.ID)
		case !errors.Is(itemErr, core.ErrLeaseLost):
			e.Errorf("Settle of %q: got %v, want nil or ErrLeaseLost", s.Grant.ID, itemErr)
		}
	}
	return settled
}

// collide calls a and b at the same time for a few ids, again and again until
// all ids had their turn; b gets them in the other order. They take turns in
// being first.
func (c *caseT) collide(ids []core.ID, a, b func(chunk []core.ID)) {
	aFirst := false
	for chunk := range slices.Chunk(ids, 6) {
		backwards := slices.Clone(chunk)
		slices.Reverse(backwards)
		calls := []func(){func() { a(chunk) }, func() { b(backwards) }}
		if aFirst = !aFirst; aFirst {
			slices.Reverse(calls) // of goroutines started at once the last one tends to run first
		}
		var wg sync.WaitGroup
		for _, call := range calls {
			c.spawn(&wg, call)
		}
		wg.Wait()
	}
}

// contend lets 16 goroutines on 8 handles claim ids, some ids all of them, the
// others half of them, in batches and orders of their own but at about the same
// time, and returns what each was granted.
func (e *claimEnv) contend(ids []core.ID, lease func() core.Lease) [][]core.Claimed {
	const forAll = 20 // of each window
	handles := e.handles(contendHandles)
	granted := make([][]core.Claimed, contenders)
	var wg sync.WaitGroup
	for w := range contenders {
		e.spawn(&wg, func() {
			r := rand.New(rand.NewPCG(uint64(w), 1)) // the same orders in every run
			for window := range slices.Chunk(ids, 500) {
				var mine []core.ID
				for i, id := range window {
					// The first ones by all. Else every other contender, or all of every other eight: so that those on
					// one handle meet, and those on all of them.
					half := []int{w, w / contendHandles}[i/2%2]
					if i < forAll || (half+i)%2 == 0 {
						mine = append(mine, id)
					}
				}
				r.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
				for _, c := range e.claimInsisting(handles[w%len(handles)], lease(), mine) {
					if c.Verdict == core.Granted {
						granted[w] = append(granted[w], c)
					}
				}
			}
		})
	}
	wg.Wait()
	return granted
}

// wantOneWinner fails unless each id was granted to exactly one contender, who
// really holds it.
func (e *claimEnv) wantOneWinner(ids []core.ID, granted [][]core.Claimed, attempt, crashes int) {
	winners := map[core.ID]int{}
	var settlements []core.Settlement
	for _, mine := range granted {
		for _, c := range mine {
			winners[c.ID]++
			settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			if c.Attempt != attempt || c.Crashes != crashes {
				e.Errorf("%q: got attempt %d, crashes %d, want %d, %d", c.ID, c.Attempt, c.Crashes, attempt, crashes)
			}
		}
	}
	for _, id := range ids {
		if n := winners[id]; n != 1 {
			e.Errorf("%q was granted to %d contenders, want exactly 1", id, n)
		}
	}
	require.NoError(e, e.insist(func() error { return e.c.Settle(e.ctx, base, settlements) }), "each winner settles")
}

package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A case on a long backlog puts rows in until it has all that it wants or this
// time is over, so that a slow store or machine makes a shorter backlog, not a
// longer run. DUECLAIM_STRESS asks for all of them, but not of a variant.
const backlogTime = 1200 * time.Millisecond

// fill calls put with batches of new ids, at least `least` of them and at most
// most, and returns how many there were.
func (e *claimEnv) fill(prefix string, least, most int, put func(ids []core.ID)) int {
	all := stress() && !e.variant
	if !all {
		most = e.scale(most, least)
	}
	ids := manyIDs(prefix, most)
	start := time.Now()
	n := 0
	for chunk := range slices.Chunk(ids, 500) {
		if n >= least && time.Since(start) > backlogTime && !all {
			break
		}
		put(chunk)
		n += len(chunk)
	}
	return n
}

var claimBacklogs = []testCase[*claimEnv]{
	{
		name: "waiting/behind-many-held",
		rule: "However many running rows stand at the head (10,000, where the store is quick enough), those behind them are found: pending ones, and ones whose lease is over.",
		run: func(e *claimEnv) {
			n := e.fill("held", 1000, 10_000, func(ids []core.ID) {
				e.put(tasks(ids, base)...)
				e.grantAll(e.lease(base), ids...)
			})
			e.put(task("lapsed", at(1)), task("pending1", at(2)), task("pending2", at(2)), task("pending3", at(3)))
			e.grant(core.Lease{Holder: e.unique("h"), Now: at(1), DueBy: at(1), Until: at(2)}, "lapsed")
			want := []core.Entry{{ID: "lapsed", Due: at(1)}, {ID: "pending1", Due: at(2)}, {ID: "pending2", Due: at(2)}, {ID: "pending3", Due: at(3)}}
			for _, limit := range []int{1, 2, 4, 100} {
				got, err := e.peer.Waiting(e.ctx, at(10), core.Entry{}, endOfTime, limit)
				require.NoError(e, err)
				e.wantEntries(want[:min(limit, len(want))], got, "behind %d held rows, limit %d", n, limit)
			}
			got, err := e.peer.Waiting(e.ctx, at(10), want[1], at(3), 10)
			require.NoError(e, err)
			e.wantEntries(want[2:3], got, "strictly after the second, before the last")
			got, err = e.peer.Waiting(e.ctx, base.Add(leaseFor+time.Millisecond), core.Entry{}, at(1), n+1)
			require.NoError(e, err)
			assert.Len(e, got, n, "when all leases are over")
		},
	},
	{
		name: "waiting/bounded-cost",
		rule: "The cost of Waiting is bounded by limit and the number of running tasks, however long the backlog.",
		run: func(e *claimEnv) {
			const short, limit = 200, 10
			put := func(ids []core.ID) {
				list := make([]core.Task, len(ids))
				for i, id := range ids {
					list[i] = core.Task{ID: id, Due: at(len(id) + int(id[len(id)-1]))}
				}
				e.put(list...)
			}
			put(manyIDs("a", short))
			page := func(after core.Entry) time.Duration {
				start := time.Now()
				got, err := e.c.Waiting(e.ctx, base, after, endOfTime, limit)
				took := time.Since(start)
				require.NoError(e, err)
				require.Len(e, got, limit, "a page")
				return took
			}
			rows := e.waiting(base)
			middle := rows[len(rows)/2]
			cost := func(after core.Entry) time.Duration {
				best := page(after)
				for range 30 {
					best = min(best, page(after))
				}
				return best
			}
			fromStart, fromMiddle := cost(core.Entry{}), cost(middle)
			n := short + e.fill("b", 2000, 20_000-short, put)
			// A scan of the backlog costs n/short times as much, and a sort of it more.
			most := func(before time.Duration) time.Duration { return before*4 + 200*time.Microsecond }
			for about, then := range map[string]struct {
				after  core.Entry
				before time.Duration
			}{
				"from the start":  {core.Entry{}, fromStart},
				"from the middle": {middle, fromMiddle},
			} {
				// A busy machine may slow down many pages in a row, but not for ever.
				best := page(then.after)
				if !e.wait(func() bool { best = min(best, page(then.after)); return best <= most(then.before) }) {
					e.Errorf("a page of %d rows %s took %s with %d rows waiting and %s with %d, want about the same", limit, about, best, n, then.before, short)
				}
			}
		},
	},
	{
		name: "waiting/after-thinning",
		rule: "However many rows come and go, in whatever order, Waiting gives each one that is left.",
		run: func(e *claimEnv) {
			n := e.scale(1000, 300)
			left := map[core.ID]time.Time{}
			var list []core.Task
			for i, id := range manyIDs("n", n) {
				left[id] = at(i / 3)
				list = append(list, task(id, left[id]))
			}
			e.put(list...)
			compare := func() {
				var want []core.Entry
				for id, due := range left {
					want = append(want, core.Entry{ID: id, Due: due})
				}
				e.wantWaiting(base, fmt.Sprintf("%d left of %d", len(want), n), byDue(want)...)
			}
			const seed = 7
			ids := manyIDs("n", n)
			random := rand.New(rand.NewPCG(seed, seed))
			random.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			for len(ids) > 0 {
				some := ids[:max(len(ids)/4, min(10, len(ids)))]
				ids = ids[len(some):]
				lease := e.lease(base)
				lease.DueBy = at(n)
				var settlements []core.Settlement
				for i, c := range e.grantAll(lease, some...) {
					s := core.Settlement{Grant: c.Grant, Outcome: core.Done}
					delete(left, c.ID)
					if i%10 == 9 { // one that comes again, elsewhere
						s.Outcome, s.Due = core.Retry, at(random.IntN(n))
						left[c.ID] = s.Due
						ids = append(ids, c.ID)
					}
					settlements = append(settlements, s)
				}
				e.settle(base, settlements...)
				compare()
			}
		},
	},
	{
		name: "waiting/late-rows",
		rule: "Waiting keeps no place of its own: a row that comes to be there with an early due time, after later ones were seen, is found by the next sweep from the start.",
		run: func(e *claimEnv) {
			e.put(task("b", at(10)), task("c", at(20)))
			for _, want := range []core.Entry{{ID: "b", Due: at(10)}, {ID: "c", Due: at(20)}} {
				got, err := e.c.Waiting(e.ctx, base, core.Entry{ID: want.ID, Due: want.Due.Add(-time.Millisecond)}, endOfTime, 1)
				require.NoError(e, err)
				e.wantEntries([]core.Entry{want}, got, "a page of one")
			}
			e.put(task("a", at(5)))
			for _, c := range []core.Claimer{e.c, e.peer} {
				got, err := c.Waiting(e.ctx, base, core.Entry{}, endOfTime, 10)
				require.NoError(e, err)
				e.wantEntries([]core.Entry{{ID: "a", Due: at(5)}, {ID: "b", Due: at(10)}, {ID: "c", Due: at(20)}}, got, "from the start")
			}
		},
	},
	{
		name: "waiting/lost-cursor",
		rule: "Waiting is told where to go on: the same arguments give the same rows, whoever asked for other pages in between.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", 30)
			e.put(tasks(ids, base)...)
			page := func(c core.Claimer, after core.ID) []string {
				got, err := c.Waiting(e.ctx, base, core.Entry{ID: after, Due: base}, endOfTime, 7)
				require.NoError(e, err)
				return show(got)
			}
			first := page(e.c, ids[9])
			for i, c := range []core.Claimer{e.c, e.peer, e.c} {
				page(c, ids[3*i])
				page(c, "")
				assert.Equal(e, first, page(e.c, ids[9]), "after %s, asked again", fmt.Sprint(i+1, " others"))
			}
		},
	},
}

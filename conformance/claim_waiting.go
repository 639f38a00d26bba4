package conformance

import (
	"slices"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var claimWaiting = []testCase[*claimEnv]{
	{
		name: "waiting/order",
		rule: "Waiting orders by due time, then by the bytes of the id.",
		run: func(e *claimEnv) {
			e.put(task("b", at(1)), task("é", at(1)), task("z", base), task("B", at(1)), task("a", at(2)), task("10", at(1)), task("9", at(1)), task("a1", at(1)))
			e.wantWaiting(at(5), "by due, then bytes",
				core.Entry{ID: "z", Due: base},
				core.Entry{ID: "10", Due: at(1)}, core.Entry{ID: "9", Due: at(1)}, core.Entry{ID: "B", Due: at(1)}, core.Entry{ID: "a1", Due: at(1)}, core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "é", Due: at(1)},
				core.Entry{ID: "a", Due: at(2)})
		},
	},
	{
		name: "waiting/before-is-exclusive",
		rule: "Waiting returns rows that are due before the bound, and none that is due at it.",
		run: func(e *claimEnv) {
			e.put(task("a", at(1)), task("b", at(2)), task("c", at(3)))
			for n, want := range [][]core.Entry{nil, nil, {{ID: "a", Due: at(1)}}, {{ID: "a", Due: at(1)}, {ID: "b", Due: at(2)}}} {
				got, err := e.c.Waiting(e.ctx, base, core.Entry{}, at(n), 10)
				require.NoError(e, err)
				e.wantEntries(want, got, "due before base + %d ms", n)
			}
		},
	},
	{
		name: "waiting/strictly-after",
		rule: "Waiting begins strictly after `after`, by due time and id, whether that row is there or not; the zero Entry begins at the start.",
		run: func(e *claimEnv) {
			rows := []core.Entry{{ID: "a", Due: at(1)}, {ID: "b", Due: at(1)}, {ID: "a0", Due: at(2)}, {ID: "c", Due: at(2)}, {ID: "d", Due: at(3)}}
			for _, r := range rows {
				e.put(task(r.ID, r.Due))
			}
			for _, tc := range []struct {
				after core.Entry
				want  int // the first row that is returned
			}{
				{core.Entry{}, 0},
				{core.Entry{ID: "z", Due: base}, 0},
				{core.Entry{ID: "A", Due: at(1)}, 0},
				{core.Entry{ID: "a", Due: at(1)}, 1},
				{core.Entry{ID: "a~", Due: at(1)}, 1},
				{core.Entry{ID: "b", Due: at(1)}, 2},
				{core.Entry{ID: "z", Due: at(1)}, 2},
				{core.Entry{Due: at(2)}, 2}, // before every id
				{core.Entry{ID: "a", Due: at(2)}, 2},
				{core.Entry{ID: "a0", Due: at(2)}, 3},
				{core.Entry{ID: "b", Due: at(2)}, 3},
				{core.Entry{ID: "c", Due: at(2)}, 4},
				{core.Entry{ID: "z", Due: at(2)}, 4},
				{core.Entry{Due: at(3)}, 4},
				{core.Entry{ID: "a", Due: at(3)}, 4},
				{core.Entry{ID: "d", Due: at(3)}, 5},
				{core.Entry{Due: at(4)}, 5},
			} {
				got, err := e.c.Waiting(e.ctx, base, tc.after, at(100), 10)
				require.NoError(e, err)
				e.wantEntries(rows[tc.want:], got, "after %v", show([]core.Entry{tc.after}))
			}
		},
	},
	{
		name: "waiting/pages",
		rule: "Pages that each begin after the last row of the one before give every row exactly once, also where hundreds are due at the same time.",
		run: func(e *claimEnv) {
			ids := manyIDs("n", 530)
			var want []core.Entry
			for i, id := range ids {
				due := at(100)
				if i < 10 {
					due = at(i)
				} else if i >= 510 {
					due = at(i)
				}
				want = append(want, core.Entry{ID: id, Due: due})
			}
			list := make([]core.Task, len(want))
			for i, w := range want {
				list[i] = task(w.ID, w.Due)
			}
			slices.Reverse(list)
			e.put(list...)
			for _, limit := range []int{53, 100} {
				var got []core.Entry
				for after := (core.Entry{}); len(got) <= len(want); {
					page, err := e.c.Waiting(e.ctx, base, after, at(10_000), limit)
					require.NoError(e, err)
					if len(page) == 0 {
						break
					}
					if len(page) > limit {
						e.Errorf("got a page of %d rows, want at most %d", len(page), limit)
					}
					got = append(got, page...)
					after = page[len(page)-1]
				}
				e.wantEntries(want, got, "pages of %d", limit)
			}
		},
	},
	{
		name: "waiting/limit-counts-returned",
		rule: "limit counts the rows that are returned: running rows at the head never hide those behind them.",
		run: func(e *claimEnv) {
			held := manyIDs("held", 400)
			e.put(tasks(held, base)...)
			e.put(task("p1", at(10)), task("p2", at(20)))
			e.grantAll(e.lease(base), held...)
			for limit := 1; limit <= 3; limit++ {
				got, err := e.c.Waiting(e.ctx, at(1000), core.Entry{}, at(1000), limit)
				require.NoError(e, err)
				want := []core.Entry{{ID: "p1", Due: at(10)}, {ID: "p2", Due: at(20)}}
				e.wantEntries(want[:min(limit, 2)], got, "behind 400 held rows, limit %d", limit)
			}
		},
	},
	{
		name: "waiting/lapsed",
		rule: "Rows whose lease ended before now wait, at their own due time, also behind many held ones; those whose lease ends at now are held.",
		run: func(e *claimEnv) {
			held := manyIDs("held", 400)
			e.put(tasks(held, base)...)
			e.put(task("lapsed", at(1)), task("sharp", at(2)), task("zz", at(3)))
			e.grantAll(e.lease(at(3)), held...)
			e.grant(core.Lease{Holder: e.unique("h"), Now: at(3), DueBy: at(3), Until: at(999)}, "lapsed")
			e.grant(core.Lease{Holder: e.unique("h"), Now: at(3), DueBy: at(3), Until: at(1000)}, "sharp")
			got, err := e.c.Waiting(e.ctx, at(1000), core.Entry{}, at(5000), 2)
			require.NoError(e, err)
			e.wantEntries([]core.Entry{{ID: "lapsed", Due: at(1)}, {ID: "zz", Due: at(3)}}, got, "at the end of sharp's lease")
			assert.Len(e, e.waiting(at(3).Add(leaseFor)), 3, "when the 400 leases are at their very end")
			assert.Len(e, e.waiting(at(4).Add(leaseFor)), 403, "when all leases are over")
		},
	},
	{
		name: "waiting/changes-nothing",
		rule: "Waiting changes nothing: what it returned is claimable as before.",
		run: func(e *claimEnv) {
			e.put(task("a", base), task("b", base))
			c := e.grant(core.Lease{Holder: e.unique("h"), Now: base, DueBy: base, Until: at(10)}, "b")
			want := []core.Entry{{ID: "a", Due: base}, {ID: "b", Due: base}}
			for range 3 {
				e.wantWaiting(at(50), "again", want...)
			}
			require.NoError(e, e.c.Extend(e.ctx, []core.Grant{c.Grant}, at(100)), "the lapsed one still is its holder's")
			assert.Equal(e, 1, e.grant(e.lease(at(50)), "a").Attempt, "Attempt")
		},
	},
}

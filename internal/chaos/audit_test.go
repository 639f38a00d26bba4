package chaos

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// audit is what a run's records come to.
type audit struct {
	takeovers int // runs of a task that somebody else's lease ran out on
	overlaps  int // of them, those that began before the earlier handler's end
	refused   int // late completions
	late      fleet.Spread
	alive     fleet.Spread
	drained   time.Duration
}

// String is one line of figures.
func (a audit) String() string {
	return fmt.Sprintf("take-overs %d, overlaps %d, late completions refused %d, drained in %.1f s, %v; afterwards %v",
		a.takeovers, a.overlaps, a.refused, a.drained.Seconds(), a.late, a.alive)
}

// grantRun is one run of a handler, in µs since 1970.
type grantRun struct {
	token      int64
	from, to   int64
	crashes    int
	completion int64 // when its completion was known to be accepted, else 0
}

// audit holds the promises against the records of all workers and the store's rows.
func (r *run) audit(acked []core.ID) audit {
	t := r.t
	t.Helper()
	fleet.CheckTokens(t, r.all)
	a := audit{late: fleet.SpreadOf(fleet.Said(r.all, fleet.Started, ""))}
	var early, again, doubled, lost, wrong []core.ID
	runs := r.runs(&a)
	for id, list := range runs {
		slices.SortFunc(list, func(x, y grantRun) int { return int(x.token - y.token) })
		completions := 0
		for i, x := range list {
			if x.completion != 0 {
				completions++
				if i < len(list)-1 {
					again = append(again, id)
				}
			}
			if i == 0 {
				continue
			}
			if x.crashes > list[i-1].crashes {
				a.takeovers++
			}
			if x.from < list[i-1].to {
				a.overlaps++
			}
		}
		if completions > 1 {
			doubled = append(doubled, id)
		}
	}
	for _, e := range fleet.Said(r.all, fleet.Started, "") {
		if e.Lateness() < 0 {
			early = append(early, e.ID)
		}
	}
	rows := r.b.Rows(t)
	for _, id := range acked {
		row, ok := rows[id]
		switch {
		case !ok || len(runs[id]) == 0:
			lost = append(lost, id)
		case row.Status != claim.DoneState:
			wrong = append(wrong, id)
		}
	}
	assert.Empty(t, fleet.First(early), "%d started early", len(early))
	assert.Empty(t, fleet.First(again), "%d ran again after a completion that was acknowledged", len(again))
	assert.Empty(t, fleet.First(doubled), "%d were completed twice", len(doubled))
	assert.Empty(t, fleet.First(lost), "%d acknowledged tasks were lost", len(lost))
	assert.Empty(t, fleet.First(wrong), "%d acknowledged tasks are not done", len(wrong))
	assert.NotEmpty(t, acked)
	return a
}

// runs gathers what was run, by id. A handler of a killed worker ended with it.
func (r *run) runs(a *audit) map[core.ID][]grantRun {
	runs := map[core.ID][]grantRun{}
	for _, p := range r.all {
		end := time.Now()
		if at, ok := r.killed[p]; ok {
			end = at
		}
		mine := map[core.ID][]grantRun{}
		last := func(e fleet.Event) *grantRun {
			for i := range mine[e.ID] {
				if mine[e.ID][i].token == e.Token {
					return &mine[e.ID][i]
				}
			}
			return nil
		}
		for _, e := range p.All(fleet.Started, "") {
			mine[e.ID] = append(mine[e.ID], grantRun{token: e.Token, from: e.At, to: end.UnixMicro(), crashes: e.Crashes})
		}
		for _, e := range p.All(fleet.Returned, "") {
			if x := last(e); x != nil {
				x.to = e.At
			}
		}
		for _, e := range p.All(fleet.Settled, "") {
			switch x := last(e); {
			case e.Lost:
				a.refused++
			case x != nil && e.Completed():
				x.completion = e.At
			}
		}
		for id, list := range mine {
			runs[id] = append(runs[id], list...)
		}
	}
	return runs
}

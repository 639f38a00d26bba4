package sqltable

import (
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// settleRounds bounds how often a settlement runs after its own heartbeats. They are a
// third of a lease apart, so that the second round is the last, but for a process that
// stood still in between.
const settleRounds = 3

// settleUpdated ends grants in mode StatusUpdated. A heartbeat of this very process may
// move the fence while the statement is on its way: the statement then finds nothing,
// though nobody else has the row, and is made again.
func (e *Engine) settleUpdated(ctx context.Context, conn Conn, outcome core.Outcome, chunk []place[core.Settlement], now time.Time, usersTx bool, failed *failures) error {
	for round := 1; len(chunk) > 0; round++ {
		moved, err := e.settleFenced(ctx, conn, outcome, chunk, now, usersTx, failed)
		if err != nil {
			return err
		}
		if round == settleRounds {
			for _, p := range moved {
				failed.add(p.at, p.v.Grant.ID, core.ErrBusy)
			}
			return nil
		}
		chunk = moved
	}
	return nil
}

// settleFenced settles by the fences that are known, and returns those settlements
// whose fence is another one of theirs by now.
func (e *Engine) settleFenced(ctx context.Context, conn Conn, outcome core.Outcome, chunk []place[core.Settlement], now time.Time, usersTx bool, failed *failures) (moved []place[core.Settlement], err error) {
	t := &e.table
	c := Change{Exact: true}
	c.Set, c.Fields = e.ending(outcome, []Field{FieldFence, FieldUpdated})
	c.Set = append(c.Set, Assign{t.Updated.Name, Expr{ItemField(FieldUpdated)}})
	c.Guard = e.fenced()
	n := t.Updated.AtLeast(now)
	writes, tried, before := make([]int64, len(chunk)), make([][]int64, len(chunk)), make([][]int64, len(chunk))
	var owner []int // the place in chunk of each item
	for i, p := range chunk {
		it := e.item(p.v)
		tried[i] = e.fences.held(p.v.Grant)
		it.Updated = max(n, next(t.Updated, slices.Max(tried[i]))) // it rises with every change
		writes[i] = it.Updated
		for _, fence := range tried[i] {
			it.Fence = fence
			c.Items = append(c.Items, it)
			owner = append(owner, i)
		}
		e.fences.note(p.v.Grant, now, now, func(x *fence) {
			before[i] = slices.Clone(x.settled)
			if e.may(x.held, it.Updated) {
				x.settled = append(x.settled, it.Updated)
			}
		})
	}
	done, err := e.record(ctx, conn, c)
	if err != nil {
		return nil, err
	}
	settled := Changes{Changed: make([]bool, len(chunk))}
	for k, changed := range done.Changed {
		if changed {
			settled.Changed[owner[k]] = true
		}
	}
	grants := make([]place[core.Grant], len(chunk))
	for i, p := range chunk { // now it is known
		grants[i] = place[core.Grant]{i, p.v.Grant}
		e.fences.note(p.v.Grant, now, now, func(x *fence) {
			if x.settled = before[i]; settled.Changed[i] {
				x.settled = []int64{writes[i]}
			}
		})
	}
	status := e.status(e.ended(outcome).Column())
	err = e.unchanged(ctx, conn, grants, settled, func(g place[core.Grant], r *record) {
		p := chunk[g.at]
		err := core.ErrLeaseLost
		switch {
		case r.Status == status && e.fences.settled(g.v, r.updated):
			if !usersTx {
				err = nil // by an earlier try, whose reply was lost
			}
		case e.stillHeld(g.v, r) != nil:
			e.fences.forget(g.v)
		case !slices.Contains(tried[g.at], r.updated):
			moved = append(moved, p)
			return
		default:
			err = core.ErrBusy // the row was locked
		}
		failed.add(p.at, g.v.ID, err)
	})
	return moved, err
}

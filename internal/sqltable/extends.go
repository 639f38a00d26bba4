package sqltable

import (
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func grantID(g core.Grant) core.ID { return g.ID }

func grantBytes(g core.Grant) int { return len(g.Holder) + 16 }

// Extend is core.Claimer's. In mode Transition it only looks whether the step is
// still to be done.
func (e *Engine) Extend(ctx context.Context, conn Conn, grants []core.Grant, until time.Time) error {
	var failed failures
	malformed := func(at int, _ error) { failed.add(at, grants[at].ID, core.ErrLeaseLost) } // such an id was never granted
	step := e.extendFull
	switch e.mode {
	case claim.StatusUpdated:
		step = e.extendUpdated
	case claim.Transition:
		step = e.extendRead
	}
	conn = &watched{Conn: conn}
	for chunk := range chunks(e, grants, grantID, grantBytes, malformed) {
		if err := step(ctx, conn, chunk, until, &failed); err != nil {
			return err
		}
	}
	return failed.err()
}

// held is the guard of a grant in mode Full.
func (e *Engine) held() Expr {
	t := &e.table
	return and(e.is(t.State.Processing),
		Expr{Col(t.Token), SQL(" = "), ItemField(FieldToken)},
		Expr{Col(t.Holder), SQL(" = "), ItemField(FieldHolder)},
		e.where())
}

func (e *Engine) extendFull(ctx context.Context, conn Conn, chunk []place[core.Grant], until time.Time, failed *failures) error {
	t := &e.table
	c := Change{
		Items:  make([]Item, len(chunk)),
		Fields: []Field{FieldToken, FieldHolder},
		Guard:  and(e.held(), before(t.Lease, until)),
		Set:    []Assign{{t.Lease.Name, Expr{Time{t.Lease, t.Lease.AtLeast(until)}}}},
	}
	for i, p := range chunk {
		c.Items[i] = Item{ID: p.v.ID, Token: p.v.Token, Holder: p.v.Holder}
	}
	done, err := conn.Change(ctx, c)
	if err != nil {
		return err
	}
	return e.unchanged(ctx, conn, chunk, done, func(p place[core.Grant], r *record) {
		failed.add(p.at, p.v.ID, r.Extended(p.v, until))
	})
}

// unchanged reads back the rows of the items that were not changed and calls why
// for each; one that isn't there is the zero record.
func (e *Engine) unchanged(ctx context.Context, conn Conn, chunk []place[core.Grant], done Changes, why func(place[core.Grant], *record)) error {
	var rest []place[core.Grant]
	for i, p := range chunk {
		if done.Changed == nil || !done.Changed[i] {
			rest = append(rest, p)
		}
	}
	found, err := e.byID(ctx, conn, idsOf(rest, grantID), e.columns(false))
	if err != nil {
		return err
	}
	for _, p := range rest {
		r := found[p.v.ID]
		if r == nil {
			r = new(record)
		}
		why(p, r)
	}
	return nil
}

// extendUpdated moves Updated on, one id a statement where the database can't
// tell which rows it changed.
func (e *Engine) extendUpdated(ctx context.Context, conn Conn, chunk []place[core.Grant], until time.Time, failed *failures) error {
	t := &e.table
	now := until.Add(-t.LeaseFor) // about
	n := t.Updated.AtLeast(now)
	c := Change{
		Fields: []Field{FieldFence},
		Guard:  e.fenced(),
		Set:    []Assign{{t.Updated.Name, Expr{Time{t.Updated, n}}}},
		Exact:  true,
	}
	var owner []int // the place in chunk of each item
	before := make([][]int64, len(chunk))
	for i, p := range chunk {
		before[i] = e.fences.held(p.v)
		for _, fence := range before[i] {
			if fence < n {
				c.Items = append(c.Items, Item{ID: p.v.ID, Fence: fence})
				owner = append(owner, i)
			}
		}
		e.fences.note(p.v, now, until, func(x *fence) {
			if !slices.Contains(x.held, n) && e.may(x.held, n) {
				x.held = append(x.held, n)
			}
		})
	}
	moved := Changes{Changed: make([]bool, len(chunk))}
	if len(c.Items) > 0 {
		done, err := conn.Change(ctx, c)
		if err != nil {
			return err
		}
		for k, changed := range done.Changed {
			if changed {
				moved.Changed[owner[k]] = true
			}
		}
	}
	for i, p := range chunk { // now it is known
		held := before[i]
		if moved.Changed[i] {
			held = []int64{n}
		}
		e.fences.note(p.v, now, until, func(x *fence) { x.held = held })
	}
	return e.unchanged(ctx, conn, chunk, moved, func(p place[core.Grant], r *record) {
		err := e.stillHeld(p.v, r)
		switch {
		case err != nil:
			e.fences.forget(p.v)
		case r.updated < n:
			err = core.ErrBusy // the row was locked
		}
		failed.add(p.at, p.v.ID, err)
	})
}

// fenced is the guard of a grant in mode StatusUpdated.
func (e *Engine) fenced() Expr {
	t := &e.table
	return and(e.is(t.State.Processing), Expr{Col(t.Updated.Name), SQL(" = "), ItemField(FieldFence)}, e.where())
}

// stillHeld tells whether a row is held by g in mode StatusUpdated.
func (e *Engine) stillHeld(g core.Grant, r *record) error {
	if r.Status == claim.Running && !r.leaseNull {
		for _, fence := range e.fences.held(g) {
			if fence == r.updated {
				return nil
			}
		}
	}
	return core.ErrLeaseLost
}

func (e *Engine) extendRead(ctx context.Context, conn Conn, chunk []place[core.Grant], _ time.Time, failed *failures) error {
	none := Changes{Changed: make([]bool, len(chunk))}
	return e.unchanged(ctx, conn, chunk, none, func(p place[core.Grant], r *record) {
		if r.Status != claim.Pending {
			failed.add(p.at, p.v.ID, core.ErrLeaseLost)
		}
	})
}

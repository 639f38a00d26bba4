package sqltable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// errForeign: nobody but whoever put the row there knows what it is about.
var errForeign = errors.New("the row is in processing without a lease: other code put it there, and it is left alone")

// Claim is core.Claimer's. A malformed id is Refused with the reason, and never
// sent.
func (e *Engine) Claim(ctx context.Context, conn Conn, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out := make([]core.Claimed, len(ids))
	malformed := func(at int, err error) {
		out[at] = core.Claimed{ID: ids[at], Verdict: core.Refused, Err: err}
	}
	step := e.claimFull
	switch e.mode {
	case claim.StatusUpdated:
		step = e.claimUpdated
	case claim.Transition:
		step = e.claimRead
	}
	seen := &watched{Conn: conn}
	for chunk := range chunks(e, ids, sameID, noBytes, malformed) {
		if err := step(ctx, seen, chunk, lease, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tooLate returns an error where a claim that was given up came to rows which it could
// have had, and to none in time. read are the rows as they were read afterwards. (One that
// changed rows which then were not granted, as they don't keep what it wrote, was done.)
func tooLate(conn *watched, lease core.Lease, out []core.Claimed, read map[core.ID]*record) error {
	if lease.By.IsZero() || conn.changed {
		return nil
	}
	late := false
	for _, c := range out {
		if c.Verdict == core.Granted {
			return nil
		}
		r := read[c.ID]
		late = late || c.Verdict == core.Refused && c.Err == nil && r != nil && r.clock > lease.By.UnixMicro()
	}
	if !late {
		return nil
	}
	return fmt.Errorf("%w: the claim came to its rows when its caller had given it up", core.ErrNotDone)
}

// claimFull claims by a conditional change. Where the database returns the changed rows
// only the others are read back.
func (e *Engine) claimFull(ctx context.Context, conn *watched, chunk []place[core.ID], lease core.Lease, out []core.Claimed) error {
	cs := e.columns(true)
	change := e.claimChange(chunk, lease)
	change.Returning = cs.outs
	done, err := conn.Change(ctx, change)
	if err != nil {
		return err
	}
	var rest []place[core.ID]
	changed := 0
	for i, p := range chunk {
		row, ok := done.Rows[i]
		if !ok {
			rest = append(rest, p)
			if done.Changed != nil && done.Changed[i] {
				changed++
			}
			continue
		}
		r := e.finish(cs.read(row))
		if r.Status != claim.Running || r.Holder != lease.Holder {
			out[p.at] = core.Claimed{ID: p.v, Verdict: core.Refused, Err: e.notKept()}
			continue
		}
		out[p.at] = e.granted(p.v, r, lease)
	}
	found, err := e.byID(ctx, conn, idsOf(rest, sameID), e.columns(true).clocked())
	if err != nil {
		return err
	}
	ours := 0
	for _, p := range rest {
		out[p.at] = e.counts(e.verdict(p.v, found[p.v], lease))
		if out[p.at].Verdict == core.Granted {
			ours++
		}
	}
	if ours < changed {
		return errReadBack
	}
	return tooLate(conn, lease, out, found)
}

// claimUpdated claims by a conditional change, and reads back what it wrote: the exact
// time is all that proves a grant. Where something else stands there, be it a trigger's
// doing or a column's that keeps fewer digits, nobody could ever complete the task, so
// that no handler may run. (A trigger may come after what an UPDATE returns, or at the
// commit.)
func (e *Engine) claimUpdated(ctx context.Context, conn *watched, chunk []place[core.ID], lease core.Lease, out []core.Claimed) error {
	done, err := conn.Change(ctx, e.claimChange(chunk, lease))
	if err != nil {
		return err
	}
	found, err := e.byID(ctx, conn, idsOf(chunk, sameID), e.columns(true).clocked())
	if err != nil {
		return err
	}
	n := e.claimedAt(lease)
	var back []Item
	for i, p := range chunk {
		r := found[p.v]
		switch {
		case r == nil || !done.Changed[i] || r.Status != claim.Running: // not claimed, or the user's already
			out[p.at] = e.verdict(p.v, r, lease)
		case r.updNull || r.updated != n:
			out[p.at] = core.Claimed{ID: p.v, Verdict: core.Refused, Err: e.notKept()}
			if !r.updNull {
				back = append(back, Item{ID: p.v, Fence: r.updated})
			}
		default:
			out[p.at] = e.granted(p.v, r, lease)
		}
	}
	e.putBack(ctx, conn, back)
	return tooLate(conn, lease, out, found)
}

// putBack makes rows pending again that were claimed for nobody. An error costs no more
// than that a row stays in processing until a lease is over.
func (e *Engine) putBack(ctx context.Context, conn Conn, items []Item) {
	if len(items) == 0 {
		return
	}
	t := &e.table
	c := Change{Items: items, Fields: []Field{FieldFence}, Guard: e.fenced(), Exact: true}
	c.Set = append([]Assign{{t.State.Name, Expr{Value{t.State.Pending}}}}, e.uncount()...)
	_, _ = conn.Change(ctx, c)
}

// notKept says why a row was refused whose columns don't keep what a claim writes.
func (e *Engine) notKept() error {
	if e.mode == claim.Full {
		return fmt.Errorf("the columns %s and %s don't keep what a claim writes, so that its holder could never complete the task: is there a trigger, or is one of them too short? Verify says more", e.table.State.Name, e.table.Holder)
	}
	u := e.table.Updated
	return fmt.Errorf("the column %s doesn't keep what a claim writes, which is its only proof, so that its holder could never complete the task: a trigger that sets it (drop it, or map Token, Holder and Lease), fewer digits of a second's fraction than Updated.Digits (%d), or a statement of yours in that very moment; Verify says more", u.Name, u.Digits)
}

// errReadBack: a proxy that sends reads to a replica would make won claims look
// lost. (A row that the user changed between the two statements looks the same;
// the caller's repeat clears it up.)
var errReadBack = errors.New("the read-back did not see all of the claimed rows: they were changed meanwhile, or a proxy sends reads to a replica, while the primary is needed")

// granted is the verdict for a row that this very call changed.
func (e *Engine) granted(id core.ID, r *record, lease core.Lease) core.Claimed {
	r.Status, r.Holder = claim.Running, lease.Holder
	if e.mode == claim.StatusUpdated {
		n := e.claimedAt(lease)
		r.Token, r.LeaseUntil = n, millis(e.table.Updated.Read(n).Add(e.table.LeaseFor))
	}
	c := r.Claimed(lease)
	c.ID = id
	return e.counts(c)
}

// counts leaves the counting to core where no column does it.
func (e *Engine) counts(c core.Claimed) core.Claimed {
	if e.table.Attempts == "" {
		c.Attempt, c.Crashes = 0, 0
	}
	return c
}

// claimedAt is the value of Updated that a claim writes in mode StatusUpdated: the
// lease, which ends LeaseFor later, must reach lease.Until.
func (e *Engine) claimedAt(lease core.Lease) int64 {
	return e.table.Updated.AtLeast(lease.Until.Add(-e.table.LeaseFor))
}

// olderThan holds where Updated is Null or before n.
func (e *Engine) olderThan(n int64) Expr {
	u := Col(e.table.Updated.Name)
	return brackets(Expr{u, SQL(" IS NULL OR "), u, SQL(" < "), Time{e.table.Updated, n}})
}

// unlike is what Updated of a pending row must be before, for a claim that writes n.
// NOW() rounds down where a claim rounds up: a row that a statement of the user's took
// from its holder and made pending, in the very step in which it had been claimed, says
// up to one step less than that claim wrote, and another claim in that step would write
// the same: two holders with one fence.
func (e *Engine) unlike(n int64) int64 {
	switch e.table.Updated.Kind {
	case claim.UnixMilli, claim.UnixSecond:
		return n - 1
	default: // by what the clock shows, whatever its zone does
		return n - e.coarse().Microseconds()
	}
}

// coarse is the step in which claims write Updated: the column's, or the millisecond of
// core's times where the column keeps more.
func (e *Engine) coarse() time.Duration { return max(e.table.Updated.Step(), time.Millisecond) }

func (e *Engine) claimChange(chunk []place[core.ID], lease core.Lease) Change {
	t := &e.table
	lapsed := e.lapsed(lease.Now)
	if e.mode == claim.Full { // a repeat finds what was granted, it doesn't grant it again
		lapsed = and(lapsed, Expr{SQL("COALESCE("), Col(t.Holder), SQL(", '') <> "), Text(lease.Holder)})
	}
	pending := and(e.is(t.State.Pending), e.free(lease.DueBy))
	if e.mode == claim.StatusUpdated {
		pending = and(pending, e.olderThan(e.unlike(e.claimedAt(lease))))
	}
	state := or(pending, lapsed)
	c := Change{Items: make([]Item, len(chunk)), Exact: e.mode == claim.StatusUpdated}
	for i, p := range chunk {
		c.Items[i].ID = p.v
	}
	c.Set = append(c.Set, Assign{t.State.Name, Expr{Value{t.State.Processing}}})
	if e.mode == claim.Full {
		c.Guard = and(state, e.dueBy(lease.DueBy), e.where(), inTime(lease.By))
		// By the clock, so that it rises also when a row is deleted and its id used again,
		// whatever the claimer believes the time is.
		token := join(Expr{SQL("CASE WHEN ")}, counted(t.Token, " >= "), Expr{Tick{}, SQL(" THEN ")}, counted(t.Token, " + 1 ELSE "), Expr{Tick{}, SQL(" END")})
		c.Set = append(c.Set,
			Assign{t.Token, token},
			Assign{t.Holder, Expr{Text(lease.Holder)}},
			Assign{t.Lease.Name, Expr{Time{t.Lease, t.Lease.AtLeast(lease.Until)}}},
		)
		c.Set = append(c.Set, e.touch(lease.DueBy)...)
	} else {
		n := e.claimedAt(lease)
		c.Guard = and(state, e.dueBy(lease.DueBy), e.olderThan(n), e.where(), inTime(lease.By))
		c.Set = append(c.Set, Assign{t.Updated.Name, Expr{Time{t.Updated, n}}})
	}
	if t.Attempts != "" {
		c.Set = append(c.Set, Assign{t.Attempts, counted(t.Attempts, " + 1")})
	}
	if t.Crashes != "" {
		crashed := join(Expr{SQL(" + CASE WHEN ")}, e.is(t.State.Processing), Expr{SQL(" THEN 1 ELSE 0 END")})
		c.Set = append(c.Set, Assign{t.Crashes, join(counted(t.Crashes, ""), crashed)})
	}
	return c
}

// claimRead grants whatever stands in the state that the step starts from.
func (e *Engine) claimRead(ctx context.Context, conn *watched, chunk []place[core.ID], lease core.Lease, out []core.Claimed) error {
	found, err := e.byID(ctx, conn, idsOf(chunk, sameID), e.columns(true))
	if err != nil {
		return err
	}
	for _, p := range chunk {
		c := e.verdict(p.v, found[p.v], lease)
		if c.Verdict == core.Refused && c.Err == nil { // pending and due
			r := found[p.v]
			r.Status, r.Holder, r.Token = claim.Running, lease.Holder, lease.DueBy.UnixMilli()
			r.LeaseUntil = millis(lease.Until)
			c = r.Claimed(lease)
			c.Attempt = 0
		}
		out[p.at] = c
	}
	return nil
}

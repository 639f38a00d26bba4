package sqltable

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func settlementBytes(s core.Settlement) int { return len(s.Grant.Holder) + len(s.Err) + 48 }

// Settle is core.Claimer's, on the pool. In mode Transition a Done whose row still
// stands where it was fails with core.ErrUnfinished.
func (e *Engine) Settle(ctx context.Context, conn Conn, now time.Time, settlements []core.Settlement) error {
	return e.settle(ctx, conn, now, settlements, false)
}

// SettleTx is Settle in a user's transaction, where also a settlement that an
// earlier call made is core.ErrLeaseLost: the user's other writes were committed
// with that one. It is not for mode Transition, whose settlements write nothing that
// could tell.
func (e *Engine) SettleTx(ctx context.Context, conn Conn, now time.Time, settlements []core.Settlement) error {
	if e.mode == claim.Transition {
		return fmt.Errorf("%w: the table is in mode %s: make the step with Transition", core.ErrInvalid, e.mode)
	}
	return e.settle(ctx, conn, now, settlements, true)
}

func (e *Engine) settle(ctx context.Context, conn Conn, now time.Time, settlements []core.Settlement, usersTx bool) error {
	var failed failures
	var good []place[core.Settlement]
	for i, s := range settlements {
		if s.Outcome < core.Done || s.Outcome > core.Released {
			failed.add(i, s.Grant.ID, core.ErrInvalid)
			continue
		}
		if s.Outcome == core.DeadLetter && e.table.State.Dead.IsZero() {
			s.Outcome, s.Due = core.Retry, core.CeilMilli(now.Add(claim.DeadPause))
		}
		good = append(good, place[core.Settlement]{i, s})
	}
	step := e.settleFull
	switch e.mode {
	case claim.StatusUpdated:
		step = e.settleUpdated
	case claim.Transition:
		step = e.settleRead
	}
	conn = &watched{Conn: conn}
	for _, outcome := range []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released} {
		group := slices.DeleteFunc(slices.Clone(good), func(p place[core.Settlement]) bool { return p.v.Outcome != outcome })
		id := func(p place[core.Settlement]) core.ID { return p.v.Grant.ID }
		malformed := func(at int, _ error) { failed.add(group[at].at, id(group[at]), core.ErrLeaseLost) }
		size := func(p place[core.Settlement]) int { return settlementBytes(p.v) }
		for chunk := range chunks(e, group, id, size, malformed) {
			part := make([]place[core.Settlement], len(chunk))
			for i, p := range chunk {
				part[i] = p.v
			}
			if err := step(ctx, conn, outcome, part, now, usersTx, &failed); err != nil {
				return err
			}
		}
	}
	return failed.err()
}

// ended is the state that an outcome leads to.
func (e *Engine) ended(outcome core.Outcome) claim.Value {
	switch outcome {
	case core.Done:
		return e.table.State.Done
	case core.DeadLetter:
		return e.table.State.Dead
	default:
		return e.table.State.Pending
	}
}

// ending sets what an outcome sets in both modes that write.
func (e *Engine) ending(outcome core.Outcome, fields []Field) ([]Assign, []Field) {
	t := &e.table
	set := []Assign{{t.State.Name, Expr{Value{e.ended(outcome)}}}}
	if t.LastError != "" && (outcome == core.Retry || outcome == core.DeadLetter) {
		set, fields = append(set, Assign{t.LastError, Expr{ItemField(FieldErr)}}), append(fields, FieldErr)
	}
	if t.Due.Written() && (outcome == core.Retry || outcome == core.Released) {
		set, fields = append(set, Assign{t.Due.Column.Name, Expr{ItemField(FieldDue)}}), append(fields, FieldDue)
	}
	if outcome == core.Released {
		set = append(set, e.uncount()...)
	}
	return set, fields
}

// uncount takes an attempt back, never below 0, which an unsigned column refuses.
func (e *Engine) uncount() []Assign {
	n := e.table.Attempts
	if n == "" {
		return nil
	}
	return []Assign{{n, join(Expr{SQL("CASE WHEN ")}, counted(n, " > 0 THEN "), counted(n, " - 1 ELSE 0 END"))}}
}

// item is a settlement's Item.
func (e *Engine) item(s core.Settlement) Item {
	it := Item{ID: s.Grant.ID, Token: s.Grant.Token, Holder: s.Grant.Holder, Err: s.Err}
	if e.table.Due.Written() {
		it.Due = e.table.Due.Column.AtLeast(s.Due)
	}
	if e.mode == claim.Full {
		it.Lease = e.table.Lease.AtLeast(s.Due)
	}
	return it
}

func (e *Engine) settleFull(ctx context.Context, conn Conn, outcome core.Outcome, chunk []place[core.Settlement], now time.Time, usersTx bool, failed *failures) error {
	t := &e.table
	c := Change{Items: make([]Item, len(chunk)), Guard: e.held(), Exact: usersTx}
	c.Set, c.Fields = e.ending(outcome, []Field{FieldToken, FieldHolder})
	c.Set = append(c.Set, e.touch(now)...)
	if e.rests() && (outcome == core.Retry || outcome == core.Released) { // until then
		c.Set, c.Fields = append(c.Set, Assign{t.Lease.Name, Expr{ItemField(FieldLease)}}), append(c.Fields, FieldLease)
	} else {
		c.Set = append(c.Set, Assign{t.Lease.Name, Expr{SQL("NULL")}})
	}
	for i, p := range chunk {
		c.Items[i] = e.item(p.v)
	}
	done, err := e.record(ctx, conn, c)
	if err != nil {
		return err
	}
	return e.unsettled(ctx, conn, chunk, done, func(p place[core.Settlement], r *record) {
		err := r.Settled(p.v.Grant)
		if err == nil && (usersTx || !e.settledAs(r, p.v)) {
			err = core.ErrLeaseLost
		}
		failed.add(p.at, p.v.Grant.ID, err)
	})
}

// settledAs tells whether an earlier try of s left the row as it is. A statement of
// the user's that sets the state, be it to the very same one, leaves the lease of
// who held the row.
func (e *Engine) settledAs(r *record, s core.Settlement) bool {
	if r.Status != e.status(e.ended(s.Outcome).Column()) {
		return false
	}
	if e.rests() && (s.Outcome == core.Retry || s.Outcome == core.Released) {
		lease := e.table.Lease
		return !r.leaseNull && r.LeaseUntil == millis(lease.Read(lease.AtLeast(s.Due)))
	}
	return r.leaseNull
}

// unsettled is unchanged for settlements.
func (e *Engine) unsettled(ctx context.Context, conn Conn, chunk []place[core.Settlement], done Changes, why func(place[core.Settlement], *record)) error {
	grants := make([]place[core.Grant], len(chunk))
	for i, p := range chunk {
		grants[i] = place[core.Grant]{i, p.v.Grant}
	}
	return e.unchanged(ctx, conn, grants, done, func(p place[core.Grant], r *record) { why(chunk[p.at], r) })
}

// settleRead looks whether the step was done. What was not is the next handler's.
func (e *Engine) settleRead(ctx context.Context, conn Conn, outcome core.Outcome, chunk []place[core.Settlement], now time.Time, _ bool, failed *failures) error {
	switch outcome {
	case core.Retry, core.Released:
		return ctx.Err()
	case core.DeadLetter:
		c := Change{Items: make([]Item, len(chunk)), Guard: and(e.is(e.table.State.Pending), e.where()), Exact: true}
		c.Set = append([]Assign{{e.table.State.Name, Expr{Value{e.table.State.Dead}}}}, e.touch(now)...)
		for i, p := range chunk {
			c.Items[i].ID = p.v.Grant.ID
		}
		done, err := conn.Change(ctx, c)
		if err != nil {
			return err
		}
		return e.unsettled(ctx, conn, chunk, done, func(p place[core.Settlement], r *record) {
			if r.Status == claim.Pending {
				failed.add(p.at, p.v.Grant.ID, core.ErrBusy) // the row was locked
			}
		})
	}
	none := Changes{Changed: make([]bool, len(chunk))}
	return e.unsettled(ctx, conn, chunk, none, func(p place[core.Settlement], r *record) {
		// A row that the user has put off meanwhile is the next sweep's.
		if r.Status == claim.Pending && !r.dueNull && r.Due <= now.UnixMilli() {
			err := fmt.Errorf("%w: the handler returned nil, but the row is still in %s: make the step with Transition", core.ErrUnfinished, e.table.State.Pending)
			failed.add(p.at, p.v.Grant.ID, err)
		}
	})
}

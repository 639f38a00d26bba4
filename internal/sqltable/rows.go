package sqltable

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// record is a row of the user's table as it was read.
type record struct {
	claim.Row
	dueNull   bool  // it is never due
	leaseNull bool  // in processing: somebody else's code put it there
	updated   int64 // the value of the column Updated
	updNull   bool
	clock     int64 // the server's when it was read, where that was asked for
}

// columns are the Outs of a record, and how each is put into one.
type columns struct {
	outs []Out
	set  []func(*record, Val)
}

func (cs *columns) add(out Out, set func(*record, Val)) {
	cs.outs = append(cs.outs, out)
	cs.set = append(cs.set, set)
}

// clocked adds the server's clock.
func (cs *columns) clocked() *columns {
	cs.add(Out{Expr: Expr{Clock{}}, As: AsInt}, func(r *record, v Val) { r.clock = v.Int })
	return cs
}

func (cs *columns) read(row Row) *record {
	r := new(record)
	for i, set := range cs.set {
		set(r, row[i])
	}
	return r
}

// columns are those that decide, and with granted also those that only a granted
// row needs.
func (e *Engine) columns(granted bool) *columns {
	cs := new(columns)
	t := &e.table
	cs.add(Out{Expr: Expr{Col(t.ID.Name)}, As: AsID}, func(r *record, v Val) { r.ID = core.ID(v.Text) })
	cs.add(Out{Expr: Expr{Col(t.State.Name)}, As: AsText}, func(r *record, v Val) { r.Status = e.status(v.Text) })
	cs.add(Out{Expr: Expr{Col(e.due.Name)}, As: AsTime, Time: e.due}, func(r *record, v Val) {
		r.dueNull = v.Null
		if !v.Null {
			r.Due = core.CeilMilli(e.due.Read(v.Int).Add(e.after)).UnixMilli()
			r.Planned = r.Due
		}
	})
	if t.Updated.Name != "" {
		cs.add(Out{Expr: Expr{Col(t.Updated.Name)}, As: AsTime, Time: t.Updated}, func(r *record, v Val) {
			r.updNull, r.updated = v.Null, v.Int
			if e.mode == claim.StatusUpdated {
				r.Token, r.leaseNull = v.Int, v.Null
				r.LeaseUntil = core.CeilMilli(t.Updated.Read(v.Int).Add(t.LeaseFor)).UnixMilli()
			}
		})
	}
	if e.mode == claim.Full {
		cs.add(Out{Expr: Expr{Col(t.Token)}, As: AsInt}, func(r *record, v Val) { r.Token = v.Int })
		cs.add(Out{Expr: Expr{Col(t.Holder)}, As: AsText}, func(r *record, v Val) { r.Holder = v.Text })
		cs.add(Out{Expr: Expr{Col(t.Lease.Name)}, As: AsTime, Time: t.Lease}, func(r *record, v Val) {
			r.leaseNull = v.Null
			if !v.Null {
				r.LeaseUntil = core.CeilMilli(t.Lease.Read(v.Int)).UnixMilli()
			}
		})
	}
	if !granted {
		return cs
	}
	if t.Attempts != "" {
		cs.add(Out{Expr: Expr{Col(t.Attempts)}, As: AsInt}, func(r *record, v Val) { r.Attempts = int(v.Int) })
	}
	if t.Crashes != "" {
		cs.add(Out{Expr: Expr{Col(t.Crashes)}, As: AsInt}, func(r *record, v Val) { r.Crashes = int(v.Int) })
	}
	kind := func(r *record, v Val) { r.Kind = v.Text }
	if t.Kind != "" {
		cs.add(Out{Expr: Expr{Col(t.Kind)}, As: AsText}, kind)
	}
	if t.Payload != "" {
		cs.add(Out{Expr: Expr{Col(t.Payload)}, As: AsBytes}, func(r *record, v Val) { r.Payload = v.Bytes })
	}
	return cs
}

// finish puts in what no column holds.
func (e *Engine) finish(r *record) *record {
	if e.table.Kind == "" {
		r.Kind = e.table.FixedKind
	}
	if r.Status != claim.Running && !e.rests() {
		r.LeaseUntil = 0
	}
	return r
}

// byID reads rows by their ids, which have been checked. One that isn't there, or
// doesn't meet Where, is missing in the map.
func (e *Engine) byID(ctx context.Context, conn Conn, ids []core.ID, cs *columns) (map[core.ID]*record, error) {
	found := make(map[core.ID]*record, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	q := Query{Out: cs.outs, Rest: join(Expr{SQL(" FROM "), From{ByKey: true}, SQL(" WHERE ")}, and(Expr{IDIn(ids)}, e.where())), Current: true}
	err := conn.Query(ctx, q, func(row Row) {
		r := e.finish(cs.read(row))
		found[r.ID] = r
	})
	return found, err
}

// verdict is the answer about a row that was not granted to lease, or (mode Full)
// was; nil is a row that isn't there.
func (e *Engine) verdict(id core.ID, r *record, lease core.Lease) core.Claimed {
	switch {
	case r == nil, r.Status == claim.Pending && r.dueNull:
		return claim.Gone(id)
	case r.Status == claim.Running && r.leaseNull:
		return core.Claimed{ID: id, Verdict: core.Refused, Err: errForeign}
	}
	c := r.Claimed(lease)
	c.ID = id
	if c.Verdict == core.Refused && e.mode == claim.StatusUpdated && r.Status == claim.Pending && !r.updNull {
		// The row was changed in the very step of time that the claim would write, or in
		// the one before; see unlike.
		u := e.table.Updated
		want := u.Read(u.AtLeast(lease.Until.Add(-e.table.LeaseFor)))
		if next := u.Read(r.updated).Truncate(e.coarse()).Add(2 * e.coarse()); next.After(want) {
			c.Verdict, c.At = core.NotDue, core.CeilMilli(later(next, lease.DueBy.Add(next.Sub(want))))
		}
	}
	return c
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// millis is t in milliseconds, rounded up.
func millis(t time.Time) int64 { return core.CeilMilli(t).UnixMilli() }

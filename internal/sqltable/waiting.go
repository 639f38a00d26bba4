package sqltable

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Waiting is core.Claimer's. Ids of one due time come in the order of the
// column's own comparison. A pending row that backs off is held until then.
func (e *Engine) Waiting(ctx context.Context, conn Conn, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	cursor, err := e.cursor(ctx, conn, after)
	if err != nil {
		return nil, err
	}
	t := &e.table
	free := e.free(now.Add(-1)) // ended before now
	branches := []Expr{and(e.is(t.State.Pending), free)}
	if lapsed := e.lapsed(now); lapsed != nil {
		branches = append(branches, lapsed)
	}
	bound := Expr{Col(e.due.Name), SQL(" < "), Time{e.due, e.due.Below(before.Add(-e.after))}}
	q := Query{Out: []Out{{Expr: Expr{SQL("u.k")}, As: AsID}, {Expr: Expr{SQL("u.d")}, As: AsTime, Time: e.due}}}
	inner := Expr{Col(t.ID.Name), SQL(" AS k, "), Col(e.due.Name), SQL(" AS d")}
	order := Expr{Col(e.due.Name), SQL(", "), Col(t.ID.Name)}
	// One branch a state, so that an index on (state, due, id) gives each in order.
	q.Rest = Expr{SQL(" FROM (")}
	for i, branch := range branches {
		if i > 0 {
			q.Rest = append(q.Rest, SQL(" UNION ALL "))
		}
		q.Rest = join(q.Rest, Expr{SQL("SELECT * FROM (SELECT ")}, inner, Expr{SQL(" FROM "), From{}, SQL(" WHERE ")},
			and(branch, bound, cursor, e.where()), Expr{SQL(" ORDER BY ")}, order, Expr{SQL(" LIMIT "), Int(int64(limit)), SQL([]string{") AS b0", ") AS b1"}[i])})
	}
	q.Rest = append(q.Rest, SQL(") AS u ORDER BY u.d, u.k LIMIT "), Int(int64(limit)))
	var entries []core.Entry
	err = conn.Query(ctx, q, func(row Row) {
		entries = append(entries, core.Entry{ID: core.ID(row[0].Text), Due: core.CeilMilli(e.due.Read(row[1].Int).Add(e.after))})
	})
	return entries, err
}

// cursor holds for rows behind an entry.
func (e *Engine) cursor(ctx context.Context, conn Conn, after core.Entry) (Expr, error) {
	if after == (core.Entry{}) {
		return nil, nil
	}
	known := e.CheckID(after.ID) == nil
	behind := Expr{Col(e.table.ID.Name), SQL(" > "), ID(after.ID)}
	due := after.Due.Add(-e.after)
	n := e.due.Below(due)
	if known && (e.due.Step() < time.Millisecond || n != e.due.AtLeast(due)) {
		// Several values make one entry: those of a millisecond, and those that a clock
		// leaves out which is put forward. The row says which it has.
		q := Query{
			Out:  []Out{{Expr: Expr{Col(e.due.Name)}, As: AsTime, Time: e.due}},
			Rest: Expr{SQL(" FROM "), From{ByKey: true}, SQL(" WHERE "), IDIn{after.ID}},
		}
		err := conn.Query(ctx, q, func(row Row) {
			if v := row[0]; !v.Null && core.CeilMilli(e.due.Read(v.Int)).Equal(core.CeilMilli(due)) {
				n = v.Int
			}
		})
		if err != nil {
			return nil, err
		}
	}
	d := Col(e.due.Name)
	at := Time{e.due, n}
	if !known { // before all ids of that time
		return Expr{d, SQL(" >= "), at}, nil
	}
	return and(Expr{d, SQL(" >= "), at}, brackets(join(Expr{d, SQL(" > "), at, SQL(" OR ")}, behind))), nil
}

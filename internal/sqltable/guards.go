package sqltable

import (
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// join concatenates expressions.
func join(parts ...Expr) Expr { return slices.Concat(parts...) }

// and is the conjunction of conditions; empty ones don't count.
func and(conditions ...Expr) Expr {
	var all Expr
	for _, c := range conditions {
		if len(c) == 0 {
			continue
		}
		if len(all) > 0 {
			all = append(all, SQL(" AND "))
		}
		all = append(all, c...)
	}
	return all
}

func brackets(e Expr) Expr { return join(Expr{SQL("(")}, e, Expr{SQL(")")}) }

func or(a, b Expr) Expr {
	if len(b) == 0 {
		return a
	}
	return brackets(join(brackets(a), Expr{SQL(" OR ")}, brackets(b)))
}

func (e *Engine) is(v claim.Value) Expr {
	return Expr{Col(e.table.State.Name), SQL(" = "), Value{v}}
}

// where holds for the rows of the queue.
func (e *Engine) where() Expr {
	var all []Expr
	for _, c := range e.table.Where {
		if c.IsNull {
			all = append(all, Expr{Col(c.Column), SQL(" IS NULL")})
		} else {
			all = append(all, Expr{Col(c.Column), SQL(" = "), Value{c.Equals}})
		}
	}
	return and(all...)
}

// dueBy holds for rows that are due at t.
func (e *Engine) dueBy(t time.Time) Expr {
	return Expr{Col(e.due.Name), SQL(" <= "), Time{e.due, e.due.AtMost(t.Add(-e.after))}}
}

// before holds where a time column is surely before t; not where it is Null.
func before(c claim.TimeColumn, t time.Time) Expr {
	return Expr{Col(c.Name), SQL(" < "), Time{c, c.Below(t)}}
}

// rests tells whether a pending row backs off until the end of its lease: in mode
// Full, where a retry can't write the due time.
func (e *Engine) rests() bool { return e.mode == claim.Full && !e.table.Due.Written() }

// free holds for a pending row that doesn't back off at t.
func (e *Engine) free(t time.Time) Expr {
	if !e.rests() {
		return nil
	}
	c := e.table.Lease
	return brackets(Expr{Col(c.Name), SQL(" IS NULL OR "), Col(c.Name), SQL(" <= "), Time{c, c.AtMost(t)}})
}

// lapsed holds for a row in processing whose lease ended before t.
func (e *Engine) lapsed(t time.Time) Expr {
	switch e.mode {
	case claim.Full:
		return and(e.is(e.table.State.Processing), before(e.table.Lease, t))
	case claim.StatusUpdated:
		return and(e.is(e.table.State.Processing), before(e.table.Updated, t.Add(-e.table.LeaseFor)))
	default:
		return nil
	}
}

// inTime holds until the server's clock is past an instant; the zero one: always.
func inTime(by time.Time) Expr {
	if by.IsZero() {
		return nil
	}
	return Expr{Clock{}, SQL(" <= "), Int(by.UnixMicro())}
}

// counted is an integer column's old value, 0 for Null, plus what follows.
func counted(column, plus string) Expr {
	return Expr{SQL("COALESCE("), Col(column), SQL(", 0)" + plus)}
}

// touch sets the time of the row's last change, in modes where it is no fence.
func (e *Engine) touch(now time.Time) []Assign {
	if e.table.Updated.Name == "" || e.mode == claim.StatusUpdated {
		return nil
	}
	c := e.table.Updated
	return []Assign{{c.Name, Expr{Time{c, c.AtMost(now)}}}}
}

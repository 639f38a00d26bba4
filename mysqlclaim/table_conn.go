package mysqlclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-sql-driver/mysql"

	"github.com/dueclaim/dueclaim/internal/sqltable"
)

var (
	_ sqltable.Conn = pooled{}
	_ sqltable.Conn = inTx{}
)

// pooled is a Conn of autocommit statements, which pass over locked rows; see
// statement.go for their shape.
type pooled struct {
	t      *Table
	effect *effect
}

func (t *Table) pooled() pooled { return pooled{t, new(effect)} }

func (p pooled) Query(ctx context.Context, q sqltable.Query, row func(sqltable.Row)) error {
	return p.t.query(ctx, p.t.db, q, queryMode{set: []string{shortWait, allRows}}, row)
}

func (p pooled) Change(ctx context.Context, c sqltable.Change) (sqltable.Changes, error) {
	return p.t.change(ctx, pool{p.t.db}, c, changeMode{
		skip: " SKIP LOCKED", atOnce: exactAtOnce, alone: true, set: []string{shortWait, anyUpdate}, effect: p.effect,
	})
}

// inTx is a Conn in a transaction of the user's, whose statements wait for locked
// rows, and lock what they read back, as a plain read would see an old snapshot.
type inTx struct {
	t  *Table
	tx *sql.Tx
}

func (x inTx) Query(ctx context.Context, q sqltable.Query, row func(sqltable.Row)) error {
	return x.t.query(ctx, x.tx, q, queryMode{lock: " FOR UPDATE", set: []string{allRows}, joined: true}, row)
}

func (x inTx) Change(ctx context.Context, c sqltable.Change) (sqltable.Changes, error) {
	return x.t.change(ctx, x.tx, c, changeMode{atOnce: 1, set: []string{anyUpdate}, effect: new(effect)})
}

// unfit is sqltable.Limits.Unfit; each of the errors that err joins must be such a one. They
// end a statement, and not its transaction. They are known by the classes of SQLSTATE for
// data, constraints and a trigger's SIGNAL, or by their numbers.
func unfit(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !unfit(err) })
	}
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	switch string(e.SQLState[:2]) {
	case "22", "23", "45":
		return true
	}
	switch e.Number {
	case errNoRight, errIncorrectValue, errCheck, errCannotConvert, errConvertedLess, errRowSize:
		return true
	}
	return false
}

// queryMode is how a Query runs.
type queryMode struct {
	lock   string   // what to do about the rows of one that must be Current
	set    []string // session variables that it sets for itself
	joined bool     // it is part of a transaction of the user's
}

// changeMode is how a Change runs.
type changeMode struct {
	skip   string // what to do about locked rows
	atOnce int    // how many statements of an exact one run at once
	alone  bool   // each statement is a transaction of its own
	set    []string
	effect *effect
}

// exactAtOnce is how many statements of an exact Change run at once: MySQL can't
// say which rows an UPDATE changed, so each of them takes one item, and the
// driver can't pipeline them.
const exactAtOnce = 4

func (t *Table) query(ctx context.Context, conn conn, q sqltable.Query, mode queryMode, row func(sqltable.Row)) error {
	c, err := t.facts(ctx, conn)
	if err != nil {
		return unsent{err}
	}
	text, err := t.selection(c, q, mode)
	if err == nil {
		err = t.run(ctx, conn, text, q.Out, row)
	}
	t.forget(err)
	return err
}

func (t *Table) change(ctx context.Context, conn conn, ch sqltable.Change, mode changeMode) (sqltable.Changes, error) {
	c, err := t.facts(ctx, conn)
	if err != nil {
		return sqltable.Changes{}, unsent{err}
	}
	exec := func(s *statement) (int64, error) {
		if s.err != nil {
			return 0, s.err
		}
		set := mode.set
		if !mode.alone && c.dialect.snapshot {
			set = append(slices.Clip(set), newestRows)
		}
		n := int64(0)
		res, err := conn.ExecContext(ctx, c.dialect.set(s.String(), set...))
		if err == nil {
			n, err = res.RowsAffected()
		}
		mode.effect.of(n, err)
		t.forget(err)
		return n, err
	}
	if len(ch.Items) == 1 || ch.Exact {
		changed, err := eachItem(ch.Items, mode.atOnce, func(it *sqltable.Item) (bool, error) {
			n, err := exec(t.changeOne(c, ch, it, mode))
			if mode.alone && ch.Exact && mustRollBack(err) && number(err) != errLockTimeout {
				// It lost a deadlock, and that is known: as if the row had been locked. An
				// error would make the outcome of all the others unknown.
				return false, nil
			}
			return n > 0, err
		})
		return sqltable.Changes{Changed: changed}, err
	}
	n, err := exec(t.changeAll(c, ch, mode))
	if err != nil || n != 0 && n != int64(len(ch.Items)) {
		return sqltable.Changes{}, err
	}
	changed := make([]bool, len(ch.Items))
	for i := range changed {
		changed[i] = n > 0
	}
	return sqltable.Changes{Changed: changed}, nil
}

// eachItem runs one for each item, items of one id one after the other, since the
// statements of two would pass over the row that the other has locked.
func eachItem(items []sqltable.Item, atOnce int, one func(*sqltable.Item) (bool, error)) ([]bool, error) {
	changed, errs := make([]bool, len(items)), make([]error, len(items))
	var starts []int // of the runs of one id
	for i := range items {
		if i == 0 || items[i].ID != items[i-1].ID {
			starts = append(starts, i)
		}
	}
	var mu sync.Mutex
	take := func() (from, to int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(starts) == 0 {
			return 0, 0, false
		}
		from, to = starts[0], len(items)
		if starts = starts[1:]; len(starts) > 0 {
			to = starts[0]
		}
		return from, to, true
	}
	work := func() {
		for {
			from, to, ok := take()
			if !ok {
				return
			}
			for i := from; i < to; i++ {
				if changed[i], errs[i] = one(&items[i]); errs[i] != nil {
					mu.Lock()
					starts = nil // the outcome is unknown anyhow
					mu.Unlock()
					return
				}
			}
		}
	}
	var group sync.WaitGroup
	for range min(atOnce, len(starts)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return changed, errors.Join(errs...)
}

// changeOne is the change of one item, its fields literals.
func (t *Table) changeOne(c *catalog, ch sqltable.Change, it *sqltable.Item, mode changeMode) *statement {
	s := t.statement(c)
	s.changing, s.item = true, it
	s.sql("UPDATE (SELECT ")
	s.carry(ch)
	s.sql(" FROM ")
	s.from("t")
	s.sql(" WHERE ")
	s.expr(sqltable.Expr{sqltable.IDIn{it.ID}})
	s.guard(ch, 1, mode)
	return s
}

// changeAll is the change of many items. Where they differ, v is a table of
// literals.
func (t *Table) changeAll(c *catalog, ch sqltable.Change, mode changeMode) *statement {
	s := t.statement(c)
	s.changing, s.fields = true, ch.Fields
	s.sql("UPDATE (SELECT ")
	s.carry(ch)
	s.sql(" FROM ")
	if len(ch.Fields) == 0 {
		ids := make(sqltable.IDIn, len(ch.Items))
		for i := range ch.Items {
			ids[i] = ch.Items[i].ID
		}
		s.from("t")
		s.sql(" WHERE ")
		s.expr(sqltable.Expr{ids})
	} else {
		s.sql("(")
		s.items(ch)
		s.sql(") AS v STRAIGHT_JOIN ")
		s.from("t")
		s.sql(" ON t.", quoteName(t.def.ID.Name), " = v.i WHERE ")
		if s.spelled() {
			s.spelling()
			s.sql(" = v.r")
		} else {
			s.sql("TRUE")
		}
	}
	s.guard(ch, len(ch.Items), mode)
	return s
}

// carry writes what the derived table was has: the id, old values that are
// needed, and the items' fields.
func (s *statement) carry(ch sqltable.Change) {
	s.sql("t.", quoteName(s.t.def.ID.Name), " AS k")
	for _, a := range ch.Set {
		for _, p := range a.To {
			if col, ok := p.(sqltable.Col); ok {
				s.carryColumn(string(col))
			}
		}
	}
	for i := range s.fields {
		s.sql(fmt.Sprintf(", v.f%d", i))
	}
}

func (s *statement) carryColumn(name string) {
	for _, c := range s.carried {
		if c == name {
			return
		}
	}
	s.sql(", t.", quoteName(name), fmt.Sprintf(" AS c%d", len(s.carried)))
	s.carried = append(s.carried, name)
}

// items writes the table of literals.
func (s *statement) items(ch sqltable.Change) {
	for i := range ch.Items {
		it := &ch.Items[i]
		as := func(format string, n ...any) {
			if i == 0 {
				s.sql(" AS ", fmt.Sprintf(format, n...))
			}
		}
		if i > 0 {
			s.sql(" UNION ALL ")
		}
		s.sql("SELECT ")
		s.id(it.ID, true)
		as("i")
		if s.spelled() {
			s.sql(", ")
			s.val(string(it.ID))
			as("r")
		}
		for k, f := range s.fields {
			s.sql(", ")
			s.literal(it, f, true)
			as("f%d", k)
		}
	}
}

// guard ends the derived table and writes the rest of the statement.
func (s *statement) guard(ch sqltable.Change, n int, mode changeMode) {
	if len(ch.Guard) > 0 {
		s.sql(" AND ")
		s.expr(ch.Guard)
	}
	s.sql(" LIMIT ").int(int64(n)).sql(" FOR UPDATE", mode.skip, ") AS was STRAIGHT_JOIN ")
	s.from("o")
	s.sql(" ON o.", quoteName(s.t.def.ID.Name), " = was.k SET ")
	s.assigning = true
	for i, a := range ch.Set {
		if i > 0 {
			s.sql(", ")
		}
		s.sql("o.", quoteName(a.Column), " = ")
		s.column = a.Column
		s.expr(a.To)
	}
}

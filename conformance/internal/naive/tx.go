package naive

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Tx is a transaction on a Store: a copy of its rows, those that it touches
// locked in the Store until its end.
type Tx struct {
	s, copy *Store
	touched map[core.ID]bool
	wrote   map[string]bool
	over    bool
	aborted error
}

// Begin starts a transaction.
func (s *Store) Begin() *Tx {
	s.mu.Lock()
	defer s.mu.Unlock()
	inner := NewStore(s.bug)
	inner.Deletes, inner.tokens = s.Deletes, s.tokens
	for id, r := range s.rows {
		own := *r
		inner.rows[id] = &own
	}
	return &Tx{s: s, copy: inner, touched: map[core.ID]bool{}, wrote: map[string]bool{}}
}

// Wrote tells whether a user's own write was committed.
func (s *Store) Wrote(key string) (wrote bool) {
	s.set(func() { wrote = s.wrote[key] })
	return wrote
}

// outdated tells whether the row was changed since the transaction's begin.
func (t *Tx) outdated(id core.ID) (changed bool) {
	t.s.set(func() {
		then, now := t.copy.row(id), t.s.row(id)
		changed = then != nil && now != nil && then.token != now.token
	})
	return changed
}

// fetch has the transaction see the row as it was last committed, if it hasn't
// locked it yet.
func (t *Tx) fetch(id core.ID) {
	if t.touched[id] || t.s.is("a transaction judges by its snapshot") {
		return
	}
	t.s.set(func() {
		delete(t.copy.rows, t.s.key(id))
		if r := t.s.row(id); r != nil {
			own := *r
			t.copy.rows[t.s.key(id)] = &own
		}
	})
}

func (t *Tx) touch(id core.ID) {
	t.touched[id] = true
	if !t.s.is("SettleTx leaves its rows unlocked") {
		t.s.set(func() { t.s.locked[id] = true })
	}
}

// Insert is InsertTx.
func (t *Tx) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if ctx.Err() != nil && t.s.is("tx methods look at ctx too late") {
		return errors.Join(t.Insert(context.WithoutCancel(ctx), call, tasks), ctx.Err())
	}
	if err := errors.Join(t.aborted, ctx.Err(), call.Check()); err != nil && !t.s.is("InsertTx takes any Call") {
		return err
	}
	if t.s.is("InsertTx commits by itself") {
		return t.s.Insert(ctx, call, tasks)
	}
	if t.s.is("half a transaction is a success") && len(tasks) > 500 {
		tasks = tasks[:len(tasks)/2]
	}
	failures := map[int]error{}
	seen := map[core.ID]bool{}
	for i, task := range tasks {
		err := task.Check()
		if err == nil && seen[task.ID] {
			err = core.ErrInvalid
		}
		if err == nil || t.s.is("InsertTx checks nothing") {
			seen[task.ID] = true
			task.Due = t.rounded(task.Due)
			t.fetch(task.ID)
			t.copy.set(func() { err = errorOf(t.copy.insert(call, []core.Task{task})) })
			if err == nil || t.s.is("InsertTx locks what it refuses") {
				t.touch(task.ID)
			}
			t.s.across("InsertTx without the queue", func(other *Store) { _ = other.insert(call, []core.Task{task}) })
		}
		if err != nil {
			failures[i] = err
		}
	}
	return t.refuse(failures, func(i int) core.ID { return tasks[i].ID })
}

// Settle is SettleTx.
func (t *Tx) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	if ctx.Err() != nil && t.s.is("tx methods look at ctx too late") {
		return errors.Join(t.Settle(context.WithoutCancel(ctx), now, settlements), ctx.Err())
	}
	if err := errors.Join(t.aborted, ctx.Err()); err != nil {
		return err
	}
	if t.s.is("SettleTx commits by itself") {
		return t.s.Settle(ctx, now, settlements)
	}
	failures := map[int]error{}
	seen := map[core.ID]bool{}
	for i, x := range settlements {
		err := x.Check()
		if err == nil && seen[x.Grant.ID] {
			err = core.ErrInvalid
		}
		if err == nil {
			seen[x.Grant.ID] = true
			if !x.Due.IsZero() {
				x.Due = t.rounded(x.Due)
			}
			if t.outdated(x.Grant.ID) && t.s.is("SettleTx says busy after its snapshot") {
				failures[i] = core.ErrBusy
				continue
			}
			t.fetch(x.Grant.ID)
			t.touch(x.Grant.ID)
			t.s.across("SettleTx without the queue", func(other *Store) { _ = other.settleAll(now, []core.Settlement{x}) })
			t.copy.set(func() {
				r := t.copy.row(x.Grant.ID)
				before := r != nil && r.state != "running"
				err = errorOf(t.copy.settleAll(core.FloorMilli(now), []core.Settlement{x}))
				if err == nil && before && !t.s.is("SettleTx takes a repeat for a success") {
					err = core.ErrLeaseLost // somebody else's write, or an earlier transaction's
				}
			})
			if t.s.is("SettleTx hides lost leases") {
				err = nil
			}
		}
		if err != nil {
			failures[i] = err
		}
	}
	return t.refuse(failures, func(i int) core.ID { return settlements[i].Grant.ID })
}

func (t *Tx) rounded(due time.Time) time.Time {
	if t.s.is("rounding down") {
		return core.FloorMilli(due)
	}
	return core.CeilMilli(due)
}

func (t *Tx) refuse(failures map[int]error, id func(i int) core.ID) error {
	var items []core.ItemError
	for i := range len(failures) + 10_000 {
		if err := failures[i]; err != nil {
			items = append(items, core.ItemError{Index: i, ID: id(i), Err: err})
		}
	}
	err := core.NewBatchError(t.s.misplaced(items))
	if err != nil && t.s.is("a refusal aborts the transaction") {
		t.aborted = errors.New("the transaction is aborted")
	}
	return err
}

func errorOf(err error) error {
	var batch *core.BatchError
	if errors.As(err, &batch) {
		return batch.Items[0].Err
	}
	return err
}

// Write is a user's own write.
func (t *Tx) Write(_ context.Context, key string) error {
	t.wrote[key] = true
	return t.aborted
}

// Commit makes all of it take effect.
func (t *Tx) Commit(context.Context) error {
	if t.aborted != nil {
		t.Rollback()
		return t.aborted
	}
	t.end(true)
	return nil
}

// Rollback gives it up.
func (t *Tx) Rollback() { t.end(t.s.is("rollback commits")) }

func (t *Tx) end(commit bool) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	for id := range t.touched {
		delete(t.s.locked, id)
		if r := t.copy.row(id); r != nil && commit {
			t.s.rows[t.s.key(id)] = r
		} else if commit {
			delete(t.s.rows, t.s.key(id))
		}
	}
	if commit {
		maps.Copy(t.s.wrote, t.wrote)
	}
}

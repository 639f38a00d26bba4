package sqltable

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Engine is the logic of one Table. Its methods may be called concurrently. They
// return a *core.BatchError for refusals, else a Conn's error as it is: an
// unknown outcome.
type Engine struct {
	table  claim.Table
	mode   claim.Mode
	limits Limits
	due    claim.TimeColumn // where due times are read from
	after  time.Duration    // what is added to them
	fences fences           // mode StatusUpdated
}

// New returns an Engine for a table that was checked.
func New(table claim.Table, limits Limits) *Engine {
	e := &Engine{table: table, mode: table.Mode(), limits: limits}
	e.due, e.after = table.Due.Source()
	return e
}

// Undated implements core.Undated.
func (e *Engine) Undated() bool { return !e.table.Dated() }

// NoAhead implements core.NoAhead.
func (e *Engine) NoAhead() bool { return e.table.NoAhead() }

// CheckID implements core.IDChecker.
func (e *Engine) CheckID(id core.ID) error { return e.table.ID.Kind.Check(id) }

// place is an element of a caller's batch with its index there.
type place[T any] struct {
	at int
	v  T
}

// chunks sorts a batch by id, drops what malformed rejects, and splits it into
// what one statement takes.
func chunks[T any](e *Engine, batch []T, id func(T) core.ID, bytes func(T) int, malformed func(at int, err error)) iter.Seq[[]place[T]] {
	items := make([]place[T], 0, len(batch))
	for i, v := range batch {
		if err := e.CheckID(id(v)); err != nil {
			malformed(i, err)
			continue
		}
		items = append(items, place[T]{i, v})
	}
	slices.SortFunc(items, func(a, b place[T]) int { return cmp.Compare(id(a.v), id(b.v)) })
	size := func(p place[T]) int { return bytes(p.v) + len(id(p.v)) }
	return func(yield func([]place[T]) bool) {
		for _, chunk := range claim.Chunks(items, e.limits.Rows, e.limits.Bytes, size) {
			if !yield(chunk) {
				return
			}
		}
	}
}

func sameID(id core.ID) core.ID { return id }

func noBytes(core.ID) int { return 0 }

func idsOf[T any](chunk []place[T], id func(T) core.ID) []core.ID {
	ids := make([]core.ID, len(chunk))
	for i, p := range chunk {
		ids[i] = id(p.v)
	}
	return ids
}

// failures collects the items that failed.
type failures []core.ItemError

func (f *failures) add(at int, id core.ID, err error) {
	if err != nil {
		*f = append(*f, core.ItemError{Index: at, ID: id, Err: err})
	}
}

func (f failures) err() error {
	slices.SortFunc(f, func(a, b core.ItemError) int { return a.Index - b.Index })
	return core.NewBatchError(f)
}

// status is what a state's text means.
func (e *Engine) status(text string) claim.Status {
	is := func(v claim.Value) bool {
		if v.IsZero() {
			return false
		}
		if v.Kind() == claim.BoolValue && (text == "true") == (v.Int() == 1) && (text == "true" || text == "false") {
			return true
		}
		return text == v.Column()
	}
	s := e.table.State
	switch {
	case is(s.Pending):
		return claim.Pending
	case is(s.Processing):
		return claim.Running
	case is(s.Done):
		return claim.DoneState
	case is(s.Dead):
		return claim.DeadState
	default: // a state of the user's
		return claim.Cancelled
	}
}

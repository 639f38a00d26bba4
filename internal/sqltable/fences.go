package sqltable

import (
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// fences remembers, in mode StatusUpdated, what the column Updated of a held row
// may say by now: a heartbeat moves it, and one whose reply was lost may or may
// not have. A grant that it doesn't know stands at its Token.
type fences struct {
	mu     sync.Mutex
	of     map[core.Grant]*fence
	pruned int // how many were left at the last pruning
}

// fence is what is known of one grant.
type fence struct {
	held    []int64   // while in processing, the newest last
	settled []int64   // what a settlement may have written
	until   time.Time // it is of use until then: the lease's end, or the settlement
}

// mostFences bounds the guesses; an older one that is forgotten is a lost lease.
const mostFences = 8

// keepFences is how long what is of no use any more is kept.
const keepFences = time.Minute

// held returns the candidates for a grant.
func (f *fences) held(g core.Grant) []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.of[g]; x != nil {
		return slices.Clone(x.held)
	}
	return []int64{g.Token}
}

// settled tells whether a settlement of g wrote this.
func (f *fences) settled(g core.Grant, updated int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.of[g]
	return x != nil && slices.Contains(x.settled, updated)
}

// may tells whether a value that a statement is about to write can be a
// candidate when its reply is lost: up to the end of the lease that is known to
// have been written. Whoever takes the row over writes later ones.
func (e *Engine) may(held []int64, n int64) bool {
	u := e.table.Updated
	return !u.Read(n).After(u.Read(held[0]).Add(e.table.LeaseFor))
}

// next is the value after n.
func next(c claim.TimeColumn, n int64) int64 { return c.AtLeast(c.Read(n).Add(c.Step())) }

// note changes what is known of g, which is of use until then; now is about now.
func (f *fences) note(g core.Grant, now, until time.Time, change func(x *fence)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[core.Grant]*fence{}
	}
	x := f.of[g]
	if x == nil {
		x = &fence{held: []int64{g.Token}}
		f.of[g] = x
	}
	change(x)
	if extra := len(x.held) - mostFences; extra > 0 { // the first is the one that is known
		x.held = slices.Delete(x.held, 1, 1+extra)
	}
	x.settled = x.settled[max(0, len(x.settled)-mostFences):]
	if x.until.Before(until) {
		x.until = until
	}
	if len(f.of) > 2*f.pruned+1000 {
		for g, x := range f.of {
			if x.until.Before(now.Add(-keepFences)) {
				delete(f.of, g)
			}
		}
		f.pruned = len(f.of)
	}
}

// forget drops a grant that is over. What it may have settled itself is kept: a repeat of
// that settlement may be on its way, while a heartbeat finds the grant over.
func (f *fences) forget(g core.Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.of[g]; x != nil && len(x.settled) == 0 {
		delete(f.of, g)
	}
}

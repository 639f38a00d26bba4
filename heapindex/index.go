// Package heapindex is a [core.TimeIndex] in the process: a heap ordered by due
// time and id. It needs no server and loses its entries with the process, which
// the scheduler's sweeps make good: they read the claim store again.
//
// It suits one process, several schedulers in one process, and worker processes
// that share a claim store but no Redis: each keeps an index of its own and the
// store decides who runs what.
//
// An entry costs 50 to 75 bytes beside its id, which is kept as the caller's
// string (BenchmarkMemory). Adding, taking, moving and removing one is O(log n).
// The whole life of an entry, added, taken and removed by id, costs twice to three
// times what a plain four-ary heap needs to push and pop it: some 1.1 µs among a
// million entries, 0.4 µs among a thousand, measured on a busy machine
// (BenchmarkLife). It allocates nothing but the slice of ids that Take returns.
// The memory of a past peak is kept for the next.
//
//	go test -run '^$' -bench 'Life|Memory' ./heapindex
package heapindex

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// lockStep is how many entries one hold of the lock handles, so that a call with
// a hundred thousand entries doesn't keep a scheduler from its due tasks for
// longer than about a millisecond. Only a step that outgrows the index's memory
// takes longer, some 25 ms at a million entries.
const lockStep = 1024

var (
	_ core.TimeIndex = (*Index)(nil)
	_ core.Taker     = (*Index)(nil)
	_ core.Watcher   = (*Index)(nil)
	_ core.Restorer  = (*Index)(nil)
	_ core.Lister    = (*Index)(nil)
)

// Index is an in-process time index. It is safe for concurrent use and has no
// goroutine of its own. Its zero value is not usable; see [New].
type Index struct {
	mu       sync.Mutex
	entries  *table
	watchers map[chan struct{}]struct{}
}

// New returns an empty index.
func New() *Index {
	return &Index{
		entries:  newTable(),
		watchers: make(map[chan struct{}]struct{}),
	}
}

// Len returns the number of entries, those of running tasks included.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries.len()
}

// Add implements [core.TimeIndex]. Its only error is that of a ctx that is done.
func (x *Index) Add(ctx context.Context, entries []core.Entry) error {
	return x.put(ctx, "add", entries, x.entries.addEarlier)
}

// AddMissing implements [core.Restorer]. Its only error is that of a ctx that is
// done.
func (x *Index) AddMissing(ctx context.Context, entries []core.Entry) error {
	return x.put(ctx, "add missing", entries, x.entries.addMissing)
}

func (x *Index) put(ctx context.Context, call string, entries []core.Entry, put func(core.ID, int64)) error {
	for len(entries) > 0 {
		if err := doneErr(ctx, call); err != nil {
			return err
		}
		n := min(len(entries), lockStep)
		x.putStep(entries[:n], put)
		entries = entries[n:]
	}
	return doneErr(ctx, call)
}

func (x *Index) putStep(entries []core.Entry, put func(core.ID, int64)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.entries.head()
	x.entries.warm(entries)
	for _, e := range entries {
		put(e.ID, e.Due.UnixMilli())
	}
	x.wakeIfEarlier(before)
}

// Due implements [core.TimeIndex]: O(limit · log limit), whatever the size of
// the index. Its only error is that of a ctx that is done.
func (x *Index) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	if err := doneErr(ctx, "due"); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var due []core.Entry
	nowMs := now.UnixMilli()
	x.entries.ascend(func(it item) bool {
		if it.due > nowMs || len(due) == limit {
			return false
		}
		due = append(due, core.Entry{ID: x.entries.id(it), Due: toTime(it.due)})
		return len(due) < limit
	})
	return due, nil
}

// Move implements [core.TimeIndex]. Its only error is that of a ctx that is
// done.
func (x *Index) Move(ctx context.Context, moves []core.Move) error {
	for len(moves) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("heapindex: move: %w", err)
		}
		n := min(len(moves), lockStep)
		x.moveStep(moves[:n])
		moves = moves[n:]
	}
	return doneErr(ctx, "move")
}

func (x *Index) moveStep(moves []core.Move) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.entries.head()
	for _, m := range moves {
		x.entries.move(m.ID, m.From.UnixMilli(), m.To.UnixMilli())
	}
	x.wakeIfEarlier(before)
}

// Remove implements [core.TimeIndex]. Its only error is that of a ctx that is
// done.
func (x *Index) Remove(ctx context.Context, entries []core.Entry) error {
	for len(entries) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("heapindex: remove: %w", err)
		}
		n := min(len(entries), lockStep)
		x.removeStep(entries[:n])
		entries = entries[n:]
	}
	return doneErr(ctx, "remove")
}

func (x *Index) removeStep(entries []core.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.entries.warm(entries)
	for _, e := range entries {
		due := e.Due.UnixMilli()
		if e.Due.IsZero() {
			due = wherever
		}
		x.entries.remove(e.ID, due)
	}
}

// Take implements [core.Taker]. Its only error is that of a ctx that is done.
func (x *Index) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	if err := doneErr(ctx, "take"); err != nil {
		return nil, time.Time{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	taken, next := x.entries.take(now.UnixMilli(), until.UnixMilli(), limit)
	if next == never {
		return taken, time.Time{}, nil
	}
	return taken, toTime(next), nil
}

func doneErr(ctx context.Context, call string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("heapindex: %s: %w", call, err)
	}
	return nil
}

func toTime(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

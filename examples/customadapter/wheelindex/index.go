// Package wheelindex is a time index on a hierarchical timing wheel, in the
// process. It is an example of an adapter that lives outside of dueclaim: it uses
// nothing but the exported names of package core, and its test is one call of
// each suite.
//
// A timing wheel usually turns with a clock and lets what was due fall out. This
// one stands still, since a time index reads no clock: each call says what time it
// is. Wheels stand within wheels, and the earliest entry is found by the lowest bit
// of eight words.
//
// Adding, moving and removing an entry touches eight wheels, however many entries
// there are. Those of one and the same millisecond are sorted whenever somebody
// looks at that millisecond: where tens of thousands share one, package heapindex
// is quicker.
package wheelindex

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.TimeIndex = (*Index)(nil)
	_ core.Taker     = (*Index)(nil)
	_ core.Watcher   = (*Index)(nil)
)

// Index is an in-process time index. It is safe for concurrent use and has no
// goroutine of its own. Its zero value is not usable; see [New].
type Index struct {
	mu       sync.Mutex
	wheel    wheel
	dues     map[core.ID]int64 // where each id stands on the wheel
	watchers map[chan struct{}]struct{}
}

// New returns an empty index.
func New() *Index {
	return &Index{dues: map[core.ID]int64{}, watchers: map[chan struct{}]struct{}{}}
}

// Add implements [core.TimeIndex]. Its only error is that of a ctx that is done;
// so it is with all methods.
func (x *Index) Add(ctx context.Context, entries []core.Entry) error {
	return change(ctx, x, "add", entries, func(e core.Entry) {
		if at, ok := x.dues[e.ID]; !ok || e.Due.UnixMilli() < at {
			x.set(e.ID, e.Due.UnixMilli())
		}
	})
}

// Move implements [core.TimeIndex].
func (x *Index) Move(ctx context.Context, moves []core.Move) error {
	return change(ctx, x, "move", moves, func(m core.Move) {
		if at, ok := x.dues[m.ID]; ok && at == m.From.UnixMilli() {
			x.set(m.ID, m.To.UnixMilli())
		}
	})
}

// Remove implements [core.TimeIndex].
func (x *Index) Remove(ctx context.Context, entries []core.Entry) error {
	return change(ctx, x, "remove", entries, func(e core.Entry) {
		if at, ok := x.dues[e.ID]; ok && (e.Due.IsZero() || at == e.Due.UnixMilli()) {
			x.wheel.drop(outermost, at, e.ID)
			delete(x.dues, e.ID)
		}
	})
}

// Due implements [core.TimeIndex].
func (x *Index) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("wheelindex: due: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var entries []core.Entry
	x.wheel.ascend(outermost, 0, func(due int64, id core.ID) bool {
		if len(entries) >= limit || due > now.UnixMilli() {
			return false
		}
		entries = append(entries, core.Entry{ID: id, Due: instant(due)})
		return true
	})
	return entries, nil
}

// Take implements [core.Taker].
func (x *Index) Take(ctx context.Context, now, until time.Time, limit int) (taken []core.ID, next time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, fmt.Errorf("wheelindex: take: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wheel.ascend(outermost, 0, func(due int64, id core.ID) bool {
		if len(taken) >= limit || due > now.UnixMilli() {
			next = instant(due) // what is taken stands before all else, so this is the first of the rest
			return false
		}
		taken = append(taken, id)
		return true
	})
	for _, id := range taken {
		x.set(id, until.UnixMilli())
	}
	return taken, next, nil
}

// step is how many entries one hold of the lock handles, so that a call with very
// many doesn't keep others from what is due.
const step = 1000

// change applies f to each item under the lock, and wakes the watchers when it
// brought an earlier head.
func change[T any](ctx context.Context, x *Index, op string, items []T, f func(T)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wheelindex: %s: %w", op, err)
	}
	for chunk := range slices.Chunk(items, step) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wheelindex: %s: %w", op, err)
		}
		x.mu.Lock()
		before := x.head()
		for _, item := range chunk {
			f(item)
		}
		if x.head() < before {
			x.wake()
		}
		x.mu.Unlock()
	}
	return nil
}

// set puts an id at due, wherever it stands. The caller holds the lock.
func (x *Index) set(id core.ID, due int64) {
	if at, ok := x.dues[id]; ok {
		x.wheel.drop(outermost, at, id)
	}
	x.wheel.put(outermost, due, id)
	x.dues[id] = due
}

// never is later than every due time.
const never = 1 << (digitBits * (outermost + 1))

// head is the earliest due time, never if there is none.
func (x *Index) head() int64 {
	head := int64(never)
	x.wheel.ascend(outermost, 0, func(due int64, _ core.ID) bool {
		head = due
		return false
	})
	return head
}

// instant is UTC, as all times of the contract are.
func instant(milli int64) time.Time { return time.UnixMilli(milli).UTC() }

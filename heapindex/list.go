package heapindex

import (
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// List implements [core.Lister]. It goes through all entries in one hold of the lock,
// some milliseconds for a million: they stand one behind the other in memory. Its only
// error is that of a ctx that is done.
func (x *Index) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := doneErr(ctx, "list"); err != nil || limit <= 0 {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	l := listing{table: x.entries, id: after.ID, due: after.Due.UnixMilli(), before: before.UnixMilli(), limit: min(limit, 1<<30)}
	for _, h := range []*heap{&x.entries.waiting, &x.entries.held} {
		for _, it := range h.items {
			l.see(it)
		}
	}
	l.cut()
	entries := make([]core.Entry, len(l.items))
	for i, it := range l.items {
		entries[i] = core.Entry{ID: x.entries.id(it), Due: toTime(it.due)}
	}
	return entries, nil
}

// listing keeps the first items that it has seen.
type listing struct {
	table  *table
	id     core.ID // after which it begins
	due    int64   // there
	before int64
	limit  int
	items  []item
	bound  item // the last of those that were kept, once there were enough
	full   bool
}

func (l *listing) see(it item) {
	switch {
	case it.due >= l.before || it.due < l.due,
		it.due == l.due && l.table.id(it) <= l.id,
		l.full && !l.table.less(it, l.bound):
		return
	}
	l.items = append(l.items, it)
	if len(l.items) >= 2*l.limit {
		l.cut()
	}
}

// cut sorts the items and drops all but the first limit.
func (l *listing) cut() {
	slices.SortFunc(l.items, func(a, b item) int {
		if l.table.less(a, b) {
			return -1
		}
		return 1
	})
	if len(l.items) >= l.limit {
		l.items = l.items[:l.limit]
		l.bound, l.full = l.items[l.limit-1], true
	}
}

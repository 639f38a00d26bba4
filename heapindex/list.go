package heapindex

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// listStep is how many slots List looks at in one hold of the lock.
const listStep = 8 * lockStep

// List implements [core.Lister]: it looks at all entries, some 30 ms for a million, a
// few thousand in one hold of the lock. Its only error is that of a ctx that is done.
//
// It goes by slots, not by places in the heaps: an entry keeps its slot while others
// come and go, so that none is missed.
func (x *Index) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if limit <= 0 {
		return nil, doneErr(ctx, "list")
	}
	l := listing{after: row{after.ID, after.Due.UnixMilli()}, before: before.UnixMilli(), limit: limit}
	for slot, more := 0, true; more; slot += listStep {
		if err := doneErr(ctx, "list"); err != nil {
			return nil, err
		}
		more = x.listStep(&l, slot)
	}
	l.cut()
	entries := make([]core.Entry, len(l.rows))
	for i, r := range l.rows {
		entries[i] = core.Entry{ID: r.id, Due: toTime(r.due)}
	}
	return entries, nil
}

// listStep looks at some slots; more: there are others behind them.
func (x *Index) listStep(l *listing, from int) (more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.entries
	end := min(from+listStep, len(t.ids))
	for slot := from; slot < end; slot++ {
		if t.ids[slot] == "" { // free
			continue
		}
		h, at := t.at(t.places[slot])
		l.see(row{t.ids[slot], h.items[at].due})
	}
	return end < len(t.ids)
}

// listing keeps the first rows that it has seen.
type listing struct {
	after  row
	before int64
	limit  int
	rows   []row
	bound  *row // the last of those that were kept, once there were enough
}

type row struct {
	id  core.ID
	due int64
}

func (r row) compare(s row) int { return cmp.Or(cmp.Compare(r.due, s.due), cmp.Compare(r.id, s.id)) }

func (l *listing) see(r row) {
	if r.due >= l.before || r.compare(l.after) <= 0 || l.bound != nil && r.compare(*l.bound) >= 0 {
		return
	}
	l.rows = append(l.rows, r)
	if len(l.rows) >= 2*l.limit {
		l.cut()
	}
}

// cut drops all but the first limit rows, and sorts them. An entry that moved while
// the lock was free is there once: it has one slot.
func (l *listing) cut() {
	slices.SortFunc(l.rows, row.compare)
	if len(l.rows) >= l.limit {
		l.rows = l.rows[:l.limit]
		last := l.rows[l.limit-1]
		l.bound = &last
	}
}

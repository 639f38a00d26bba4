package heapindex

import (
	"math"

	"github.com/dueclaim/dueclaim/core"
)

// never is the head's due time of an empty table, later than any real one.
const never = math.MaxInt64

// wherever stands for any due time in remove.
const wherever = math.MinInt64

// table is a set of ids, each with a due time, in two heaps: those that wait,
// maybe millions, and those that were taken, a few hundred as a rule. What is
// taken goes to the end of its lease, behind all that waits: in one heap it would
// sink through all levels, and its removal would cost as much again.
//
// An entry that was taken stays in held until it is removed, wherever it is
// moved meanwhile; the order is by due time and id over both.
type table struct {
	*register
	waiting heap
	held    heap
	taken   []int32 // take's own, kept for the next
}

func newTable() *table {
	reg := newRegister()
	return &table{register: reg, waiting: heap{reg: reg}, held: heap{reg: reg, mask: -1}}
}

func (t *table) len() int { return t.waiting.len() + t.held.len() }

func (t *table) id(it item) core.ID { return t.ids[it.slot] }

// head returns the earliest due time, or never.
func (t *table) head() int64 { return min(t.waiting.head(), t.held.head()) }

// at returns the heap and the position that p stands for.
func (t *table) at(p place) (h *heap, at int) {
	if p < 0 {
		return &t.held, int(^p)
	}
	return &t.waiting, int(p)
}

// find returns where id stands.
func (t *table) find(id core.ID) (h *heap, at int, ok bool) {
	slot, ok := t.slot(id)
	if !ok {
		return nil, 0, false
	}
	h, at = t.at(t.places[slot])
	return h, at, true
}

// addEarlier puts id in at due; where it is there already the earlier due time
// stays.
func (t *table) addEarlier(id core.ID, due int64) {
	slot, isNew := t.enter(id)
	if isNew {
		t.waiting.push(item{due, slot})
		return
	}
	if h, at := t.at(t.places[slot]); due < h.items[at].due {
		h.up(at, item{due, slot})
	}
}

// addMissing puts id in at due unless it is there already.
func (t *table) addMissing(id core.ID, due int64) {
	if slot, isNew := t.enter(id); isNew {
		t.waiting.push(item{due, slot})
	}
}

// move sets id's due time to "to" if it is "from".
func (t *table) move(id core.ID, from, to int64) {
	if h, at, ok := t.find(id); ok && h.items[at].due == from {
		h.fix(at, item{to, h.items[at].slot})
	}
}

// remove deletes id if its due time is due, or due is wherever.
func (t *table) remove(id core.ID, due int64) {
	if h, at, ok := t.find(id); ok && (due == wherever || h.items[at].due == due) {
		h.cut(at)
		t.leave(id)
	}
}

// take moves up to limit entries due by now to until, and returns their ids in
// order and the earliest due time of all others, or never.
func (t *table) take(now, until int64, limit int) (taken []core.ID, next int64) {
	t.taken = t.taken[:0]
	for len(t.taken) < limit && t.head() <= now {
		t.taken = append(t.taken, t.first().cut(0).slot)
	}
	next = t.head()
	if len(t.taken) > 0 {
		taken = make([]core.ID, len(t.taken))
	}
	for i, slot := range t.taken {
		taken[i] = t.ids[slot]
	}
	for _, slot := range t.taken {
		t.held.push(item{until, slot})
	}
	return taken, next
}

// first returns the heap whose root is the first of all entries. There is one.
func (t *table) first() *heap {
	if t.held.len() == 0 || t.waiting.len() > 0 && t.less(t.waiting.items[0], t.held.items[0]) {
		return &t.waiting
	}
	return &t.held
}

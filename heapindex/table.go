package heapindex

import (
	"math"

	"github.com/dueclaim/dueclaim/core"
)

// never is the head's due time of an empty table, later than any real one.
const never = math.MaxInt64

// fanout of the heap. With four children of 16 bytes each, one level costs one
// cache line, and a heap of a million entries has ten levels, not twenty.
const fanout = 4

// item is one entry as it stands in the heap: the due time by value, so that a
// comparison rarely leaves the heap's own memory.
type item struct {
	due  int64 // milliseconds since 1970
	slot int32 // which id
}

// table is a heap of items and the way from an id to its place in it. Ids and
// places stand in two slices by slot: a sift writes one place a level, and four
// bytes an entry stay in the processor's cache where whole structs would not.
type table struct {
	heap  []item
	ids   []core.ID
	pos   []int32 // by slot: the place in heap; in a free slot: the next free one
	free  int32   // the first free slot, -1 if none
	slots map[core.ID]int32
}

func newTable() table { return table{free: -1, slots: make(map[core.ID]int32)} }

func (t *table) len() int { return len(t.heap) }

func (t *table) id(it item) core.ID { return t.ids[it.slot] }

// head returns the earliest due time, or never.
func (t *table) head() int64 {
	if len(t.heap) == 0 {
		return never
	}
	return t.heap[0].due
}

// addEarlier puts id in at due; where it is there already the earlier due time
// stays.
func (t *table) addEarlier(id core.ID, due int64) {
	if slot, ok := t.slots[id]; ok {
		if at := int(t.pos[slot]); due < t.heap[at].due {
			t.up(at, item{due, slot})
		}
		return
	}
	t.insert(id, due)
}

// addMissing puts id in at due unless it is there already.
func (t *table) addMissing(id core.ID, due int64) {
	if _, ok := t.slots[id]; !ok {
		t.insert(id, due)
	}
}

// insert puts id in, which isn't there.
func (t *table) insert(id core.ID, due int64) {
	slot := t.free
	if slot >= 0 {
		t.free = t.pos[slot]
		t.ids[slot] = id
	} else {
		slot = int32(len(t.ids))
		t.ids = append(t.ids, id)
		t.pos = append(t.pos, 0)
	}
	t.slots[id] = slot
	t.heap = append(t.heap, item{})
	t.up(len(t.heap)-1, item{due, slot})
}

// move sets id's due time to "to" if it is "from".
func (t *table) move(id core.ID, from, to int64) {
	slot, ok := t.slots[id]
	if !ok || t.heap[t.pos[slot]].due != from {
		return
	}
	t.fix(int(t.pos[slot]), item{to, slot})
}

// remove deletes id if its due time is due.
func (t *table) remove(id core.ID, due int64) {
	slot, ok := t.slots[id]
	if !ok || t.heap[t.pos[slot]].due != due {
		return
	}
	at := int(t.pos[slot])
	last := len(t.heap) - 1
	moved := t.heap[last]
	t.heap = t.heap[:last]
	if at < last {
		t.fix(at, moved)
	}
	delete(t.slots, id)
	t.ids[slot] = "" // lets the string go
	t.pos[slot] = t.free
	t.free = slot
}

// take moves up to limit entries due by now to until, and returns their ids in
// order and the earliest due time of all others; ok is false if there is none.
func (t *table) take(now, until int64, limit int) (taken []core.ID, next int64, ok bool) {
	until = max(until, now+1) // else the loop would take the same entry again
	var slots []int32
	for len(slots) < limit && t.head() <= now {
		slot := t.heap[0].slot
		slots = append(slots, slot)
		t.down(0, item{until, slot})
	}
	if len(slots) > 0 {
		taken = make([]core.ID, len(slots))
		for i, slot := range slots {
			taken[i] = t.ids[slot]
		}
	}
	if head := t.head(); head < until { // so it is none of ours
		return taken, head, true
	}
	next, ok = t.earliestBut(slots)
	return taken, next, ok
}

// earliestBut returns the earliest due time outside of the slots given.
func (t *table) earliestBut(slots []int32) (due int64, ok bool) {
	ours := make(map[int32]struct{}, len(slots))
	for _, slot := range slots {
		ours[slot] = struct{}{}
	}
	t.ascend(func(it item) bool {
		if _, skip := ours[it.slot]; skip {
			return true
		}
		due, ok = it.due, true
		return false
	})
	return due, ok
}

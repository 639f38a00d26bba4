package heapindex

// fanout of a heap. Four children of 16 bytes each are 64 bytes in a row, and a
// heap of a million entries has ten levels, not twenty.
const fanout = 4

// item is one entry as it stands in a heap: the due time by value, so that a
// comparison rarely leaves the heap's own memory.
type item struct {
	due  int64 // milliseconds since 1970
	slot int32 // which id; see register
}

// heap has its first item, by due time and id, at its root, and keeps each
// item's place up to date in the register that it shares.
type heap struct {
	items []item
	reg   *register
	mask  place // what makes a place of a position here
}

func (h *heap) len() int { return len(h.items) }

// head returns the earliest due time, or never.
func (h *heap) head() int64 {
	if len(h.items) == 0 {
		return never
	}
	return h.items[0].due
}

func (h *heap) push(it item) {
	h.items = append(h.items, item{})
	h.up(len(h.items)-1, it)
}

// cut takes out the item at a position and returns it.
func (h *heap) cut(at int) item {
	out, end := h.items[at], len(h.items)-1
	last := h.items[end]
	h.items = h.items[:end]
	if at < end {
		h.fix(at, last)
	}
	return out
}

func (h *heap) put(at int, it item) {
	h.items[at] = it
	h.reg.places[it.slot] = place(at) ^ h.mask
}

// fix places it at the hole at, wherever the order wants it.
func (h *heap) fix(at int, it item) {
	if at > 0 && h.reg.less(it, h.items[(at-1)/fanout]) {
		h.up(at, it)
		return
	}
	h.down(at, it)
}

// up places it at the hole at or above.
func (h *heap) up(at int, it item) {
	for at > 0 {
		parent := (at - 1) / fanout
		if !h.reg.less(it, h.items[parent]) {
			break
		}
		h.put(at, h.items[parent])
		at = parent
	}
	h.put(at, it)
}

// down places it at the hole at or below.
func (h *heap) down(at int, it item) {
	for {
		first, end := h.children(at)
		if first >= end {
			break
		}
		least := first
		for child := first + 1; child < end; child++ {
			if h.reg.less(h.items[child], h.items[least]) {
				least = child
			}
		}
		if !h.reg.less(h.items[least], it) {
			break
		}
		h.put(at, h.items[least])
		at = least
	}
	h.put(at, it)
}

// children returns where those of the item at a position begin and end.
func (h *heap) children(at int) (first, end int) {
	first = at*fanout + 1
	return first, min(first+fanout, len(h.items))
}

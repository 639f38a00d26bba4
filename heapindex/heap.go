package heapindex

// less orders by due time, then by the bytes of the id.
func (t *table) less(a, b item) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return t.ids[a.slot] < t.ids[b.slot]
}

func (t *table) put(at int, it item) {
	t.heap[at] = it
	t.pos[it.slot] = int32(at)
}

// fix places it at the hole at, wherever the order wants it.
func (t *table) fix(at int, it item) {
	if at > 0 && t.less(it, t.heap[(at-1)/fanout]) {
		t.up(at, it)
		return
	}
	t.down(at, it)
}

// up places it at the hole at or above.
func (t *table) up(at int, it item) {
	for at > 0 {
		parent := (at - 1) / fanout
		if !t.less(it, t.heap[parent]) {
			break
		}
		t.put(at, t.heap[parent])
		at = parent
	}
	t.put(at, it)
}

// down places it at the hole at or below.
func (t *table) down(at int, it item) {
	for {
		first := at*fanout + 1
		if first >= len(t.heap) {
			break
		}
		least := first
		for child := first + 1; child < min(first+fanout, len(t.heap)); child++ {
			if t.less(t.heap[child], t.heap[least]) {
				least = child
			}
		}
		if !t.less(t.heap[least], it) {
			break
		}
		t.put(at, t.heap[least])
		at = least
	}
	t.put(at, it)
}

// ascend calls visit with the items in order, without changing anything, until
// it returns false. The first n items cost O(n · log n): a frontier holds the
// places whose parents were visited.
func (t *table) ascend(visit func(item) bool) {
	if len(t.heap) == 0 {
		return
	}
	frontier := []int{0} // a binary heap of places
	before := func(i, j int) bool { return t.less(t.heap[frontier[i]], t.heap[frontier[j]]) }
	swap := func(i, j int) { frontier[i], frontier[j] = frontier[j], frontier[i] }
	for len(frontier) > 0 {
		at := frontier[0]
		if !visit(t.heap[at]) {
			return
		}
		last := len(frontier) - 1
		frontier[0] = frontier[last]
		frontier = frontier[:last]
		for i := 0; ; {
			least := 2*i + 1
			if least >= last {
				break
			}
			if least+1 < last && before(least+1, least) {
				least++
			}
			if !before(least, i) {
				break
			}
			swap(i, least)
			i = least
		}
		for child := at*fanout + 1; child < min(at*fanout+1+fanout, len(t.heap)); child++ {
			frontier = append(frontier, child)
			for i := len(frontier) - 1; i > 0 && before(i, (i-1)/2); i = (i - 1) / 2 {
				swap(i, (i-1)/2)
			}
		}
	}
}

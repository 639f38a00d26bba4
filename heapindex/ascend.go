package heapindex

// ascend calls visit with the items in order, without changing anything, until
// it returns false. The first n items cost O(n · log n).
func (t *table) ascend(visit func(item) bool) {
	f := frontier{table: t}
	for _, h := range []*heap{&t.waiting, &t.held} {
		if h.len() > 0 {
			f.push(h.mask) // its root: position 0
		}
	}
	for len(f.places) > 0 {
		p := f.pop()
		if !visit(f.item(p)) {
			return
		}
		h, at := t.at(p)
		first, end := h.children(at)
		for child := first; child < end; child++ {
			f.push(place(child) ^ h.mask)
		}
	}
}

// frontier is a binary heap of the places whose parents were visited.
type frontier struct {
	table  *table
	places []place
}

func (f *frontier) item(p place) item {
	h, at := f.table.at(p)
	return h.items[at]
}

func (f *frontier) before(i, j int) bool {
	return f.table.less(f.item(f.places[i]), f.item(f.places[j]))
}

func (f *frontier) swap(i, j int) { f.places[i], f.places[j] = f.places[j], f.places[i] }

func (f *frontier) push(p place) {
	f.places = append(f.places, p)
	for i := len(f.places) - 1; i > 0 && f.before(i, (i-1)/2); i = (i - 1) / 2 {
		f.swap(i, (i-1)/2)
	}
}

func (f *frontier) pop() place {
	first, end := f.places[0], len(f.places)-1
	f.places[0] = f.places[end]
	f.places = f.places[:end]
	for i := 0; ; {
		least := 2*i + 1
		if least+1 < end && f.before(least+1, least) {
			least++
		}
		if least >= end || !f.before(least, i) {
			return first
		}
		f.swap(i, least)
		i = least
	}
}

package heapindex_test

import "github.com/dueclaim/dueclaim/core"

// plainHeap is the yardstick of BenchmarkLife: a four-ary heap in the same order
// that can't find an entry by its id, so can neither remove nor move one, keeps
// nothing of what was taken, and has no lock.
type plainHeap []plainItem

type plainItem struct {
	due int64
	id  core.ID
}

func (a plainItem) less(b plainItem) bool { return a.due < b.due || a.due == b.due && a.id < b.id }

// batch pushes the entries and pops as many.
func (h *plainHeap) batch(fresh []core.Entry) error {
	for _, e := range fresh {
		h.push(plainItem{e.Due.UnixMilli(), e.ID})
	}
	for range fresh {
		h.pop()
	}
	return nil
}

func (h *plainHeap) push(it plainItem) {
	s := append(*h, it)
	at := len(s) - 1
	for at > 0 && it.less(s[(at-1)/4]) {
		s[at] = s[(at-1)/4]
		at = (at - 1) / 4
	}
	s[at] = it
	*h = s
}

func (h *plainHeap) pop() plainItem {
	s := *h
	top, it := s[0], s[len(s)-1]
	s[len(s)-1] = plainItem{}
	s = s[:len(s)-1]
	*h = s
	for at := 0; len(s) > 0; {
		least := at*4 + 1
		for child := least + 1; child < min(at*4+5, len(s)); child++ {
			if s[child].less(s[least]) {
				least = child
			}
		}
		if least >= len(s) || !s[least].less(it) {
			s[at] = it
			break
		}
		s[at] = s[least]
		at = least
	}
	return top
}

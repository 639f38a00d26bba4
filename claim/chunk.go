package claim

import "iter"

// Chunks splits items into runs of at most count items and, beyond the first
// item of a run, at most bytes by size. It yields each run with the index of its
// first item. A nil size counts nothing.
func Chunks[T any](items []T, count, bytes int, size func(T) int) iter.Seq2[int, []T] {
	return func(yield func(int, []T) bool) {
		start, sum := 0, 0
		for i, item := range items {
			n := 0
			if size != nil {
				n = size(item)
			}
			if i > start && (i-start == count || sum+n > bytes) {
				if !yield(start, items[start:i]) {
					return
				}
				start, sum = i, 0
			}
			sum += n
		}
		if start < len(items) {
			yield(start, items[start:])
		}
	}
}

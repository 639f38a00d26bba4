package pgclaim

import (
	"cmp"
	"iter"
	"slices"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// One statement carries at most this much; the limits keep its locks short and
// its message far below the server's 1 GB, also when the bytes are sent as text.
const (
	chunkRows  = 1000
	chunkBytes = 8 << 20
)

// batch is a part of a caller's slice, in the order of the ids: the order in
// which all statements lock rows.
type batch[T any] struct {
	items  []T
	places []int // of the part's items in items
	id     func(T) core.ID
}

// batches splits items. size says how many bytes of an item are sent, nil: few.
func batches[T any](items []T, id func(T) core.ID, size func(T) int) iter.Seq[batch[T]] {
	return func(yield func(batch[T]) bool) {
		places := make([]int, len(items))
		for i := range places {
			places[i] = i
		}
		slices.SortFunc(places, func(a, b int) int { return cmp.Compare(id(items[a]), id(items[b])) })
		var bytes func(int) int
		if size != nil {
			bytes = func(place int) int { return size(items[place]) }
		}
		for _, part := range claim.Chunks(places, chunkRows, chunkBytes, bytes) {
			if !yield(batch[T]{items, part, id}) {
				return
			}
		}
	}
}

// column makes the array of one column.
func column[T, C any](b batch[T], value func(T) C) []C {
	out := make([]C, len(b.places))
	for i, place := range b.places {
		out[i] = value(b.items[place])
	}
	return out
}

func (b batch[T]) ids() []string {
	return column(b, func(item T) string { return string(b.id(item)) })
}

// open is the set of a batch's items without an answer yet.
type open map[string]int // id -> place

func (b batch[T]) open() open {
	o := make(open, len(b.places))
	for _, place := range b.places {
		o[string(b.id(b.items[place]))] = place
	}
	return o
}

// only returns the part of a batch that has no answer yet.
func (b batch[T]) only(left open) batch[T] {
	part := batch[T]{items: b.items, id: b.id}
	for _, place := range b.places {
		if _, ok := left[string(b.id(b.items[place]))]; ok {
			part.places = append(part.places, place)
		}
	}
	return part
}

// take removes an id. ok is false for one that wasn't asked about or was
// answered before.
func (o open) take(id string) (place int, ok bool) {
	if place, ok = o[id]; ok {
		delete(o, id)
	}
	return place, ok
}

// ids returns what is left, sorted.
func (o open) ids() []string {
	ids := make([]string, 0, len(o))
	for id := range o {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// batchError orders the failures by place.
func batchError(items []core.ItemError) error {
	slices.SortFunc(items, func(a, b core.ItemError) int { return cmp.Compare(a.Index, b.Index) })
	return core.NewBatchError(items)
}

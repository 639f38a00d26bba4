package claim

import (
	"iter"
	"slices"
	"sort"

	"github.com/dueclaim/dueclaim/core"
)

// stamp is an id at an instant; stamps are ordered by instant, then by the bytes
// of the id.
type stamp struct {
	ms int64
	id core.ID
}

func (a stamp) before(b stamp) bool {
	if a.ms != b.ms {
		return a.ms < b.ms
	}
	return a.id < b.id
}

// maxLeaf bounds a leaf of order: small enough that an insertion moves few
// bytes, large enough that there are few leaves.
const maxLeaf = 256

// order is a sorted set of stamps: a B-tree of two levels, that is a list of
// sorted leaves none of which is empty. An operation costs two binary searches
// and moves at most half a leaf, or now and then the list of leaves. Tasks come and
// go mostly in order, so first it looks where it was last, and at the ends.
type order struct {
	leaves [][]stamp
	last   int // the leaf that was found last
}

// find returns the place of s: the leaf, the index in it, and whether it is there.
func (o *order) find(s stamp) (leaf, i int, found bool) {
	leaf = o.leaf(s)
	if leaf == len(o.leaves) {
		return leaf, 0, false
	}
	l := o.leaves[leaf]
	if l[0].before(s) {
		i = 1 + sort.Search(len(l)-1, func(k int) bool { return !l[k+1].before(s) })
	}
	return leaf, i, l[i] == s
}

// leaf returns the first leaf that doesn't end before s.
func (o *order) leaf(s stamp) int {
	ends := func(k int) bool { return !o.leaves[k][len(o.leaves[k])-1].before(s) }
	n := len(o.leaves)
	switch {
	case n == 0 || !ends(n-1):
		return n
	case o.last >= n || !ends(o.last) || o.last > 0 && ends(o.last-1):
		o.last = sort.Search(n-1, ends)
	}
	return o.last
}

// add puts s into the set. On a nil set it does nothing, and so does remove.
func (o *order) add(s stamp) {
	if o == nil {
		return
	}
	leaf, i, found := o.find(s)
	switch {
	case found:
		return
	case len(o.leaves) == 0:
		o.leaves = [][]stamp{{s}}
		return
	case leaf == len(o.leaves): // s is after all others
		leaf--
		i = len(o.leaves[leaf])
	}
	l := slices.Insert(o.leaves[leaf], i, s)
	o.leaves[leaf] = l
	if len(l) > maxLeaf {
		half := len(l) / 2
		o.leaves[leaf] = slices.Clone(l[:half])
		o.leaves = slices.Insert(o.leaves, leaf+1, slices.Clone(l[half:]))
	}
}

// remove takes s out of the set, if it is there.
func (o *order) remove(s stamp) {
	if o == nil {
		return
	}
	leaf, i, found := o.find(s)
	if !found {
		return
	}
	l := cut(o.leaves[leaf], i)
	o.leaves[leaf] = l
	switch {
	case len(l) == 0:
		o.leaves = cut(o.leaves, leaf)
	case leaf+1 < len(o.leaves) && len(l)+len(o.leaves[leaf+1]) <= maxLeaf/4:
		o.leaves[leaf] = append(l, o.leaves[leaf+1]...)
		o.leaves = cut(o.leaves, leaf+1)
	}
}

// cut takes one element out of l by moving those before it or behind it, whichever
// are fewer.
func cut[E any](l []E, i int) []E {
	if i >= len(l)/2 {
		return slices.Delete(l, i, i+1)
	}
	copy(l[1:], l[:i])
	clear(l[:1])
	return l[1:]
}

// after yields the stamps strictly after s, in order. The set must not change
// meanwhile.
func (o *order) after(s stamp) iter.Seq[stamp] {
	return func(yield func(stamp) bool) {
		leaf, i, found := o.find(s)
		if found {
			i++
		}
		for ; leaf < len(o.leaves); leaf, i = leaf+1, 0 {
			for _, at := range o.leaves[leaf][i:] {
				if !yield(at) {
					return
				}
			}
		}
	}
}

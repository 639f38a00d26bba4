package wheelindex

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/dueclaim/dueclaim/core"
)

// A due time in milliseconds is read as a number of eight digits to the base of
// 64: the outermost wheel turns once in 8,900 years and so has room for 9999,
// the innermost one once in 64 milliseconds.
const (
	digitBits = 6
	outermost = 7 // the level of its digit; the innermost one's is 0
)

// wheel has 64 slots, of which it keeps those in use. A slot of the innermost
// wheel is one millisecond, with the ids that stand there; one of another wheel
// holds a wheel, which turns 64 times as fast.
type wheel struct {
	used  uint64 // bit i: slot i is in use
	slots []slot // those in use, in their order
}

type slot struct {
	inner *wheel
	ids   map[core.ID]struct{}
}

// place returns where slot i stands, or would stand, in w.slots.
func (w *wheel) place(i uint64) (place int, used bool) {
	return bits.OnesCount64(w.used & (1<<i - 1)), w.used&(1<<i) != 0
}

func digit(due int64, level int) uint64 { return uint64(due) >> (level * digitBits) & 63 }

// put adds an id that is not there.
func (w *wheel) put(level int, due int64, id core.ID) {
	i := digit(due, level)
	place, used := w.place(i)
	if !used {
		w.used |= 1 << i
		fresh := slot{ids: map[core.ID]struct{}{}}
		if level > 0 {
			fresh = slot{inner: new(wheel)}
		}
		w.slots = slices.Insert(w.slots, place, fresh)
	}
	if level > 0 {
		w.slots[place].inner.put(level-1, due, id)
		return
	}
	w.slots[place].ids[id] = struct{}{}
}

// drop removes an id that is there, and every slot that it leaves empty.
func (w *wheel) drop(level int, due int64, id core.ID) {
	i := digit(due, level)
	place, _ := w.place(i)
	s := w.slots[place]
	if level > 0 {
		s.inner.drop(level-1, due, id)
		if s.inner.used != 0 {
			return
		}
	} else if delete(s.ids, id); len(s.ids) > 0 {
		return
	}
	w.used &^= 1 << i
	w.slots = slices.Delete(w.slots, place, place+1)
}

// ascend yields all entries by due time, then by the bytes of the id, until
// yield returns false; it returns false then. since is what the digits of the
// wheels around this one come to.
func (w *wheel) ascend(level int, since int64, yield func(due int64, id core.ID) bool) bool {
	rest := w.used
	for _, s := range w.slots {
		due := since<<digitBits | int64(bits.TrailingZeros64(rest))
		rest &= rest - 1 // without its lowest bit
		if level > 0 {
			if !s.inner.ascend(level-1, due, yield) {
				return false
			}
			continue
		}
		// Go compares strings as bytes, which is the order that the contract asks for.
		for _, id := range slices.Sorted(maps.Keys(s.ids)) {
			if !yield(due, id) {
				return false
			}
		}
	}
	return true
}

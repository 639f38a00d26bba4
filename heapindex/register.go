package heapindex

import (
	"hash/maphash"
	"math/bits"

	"github.com/dueclaim/dueclaim/core"
)

// place says where an entry stands: at position p of the heap waiting if it is
// not negative, else at position ^p of the heap held.
type place int32

// register gives each id a slot, a small number that stands for it, and says of
// each slot which id it is and at which place. Ids and places stand in two
// slices: a sift writes one place a level, and four bytes an entry stay in the
// processor's cache where whole structs would not.
//
// The way from an id to its slot is a hash table with linear probing. Unlike a
// map by id it holds no second copy of the ids, which the garbage collector would
// go through too; among a million entries the life of one is a sixth shorter.
type register struct {
	ids    []core.ID
	places []place // in a free slot: the next free one
	free   int32   // the first free slot, -1 if none

	seed  maphash.Seed
	cells []cell // a power of two, at most three quarters in use
	shift int    // a hash shifted right by it is the cell where its probing begins
	used  int

	warmed uint32 // means nothing; without it the compiler would leave out warm's reads
}

// cell is one place of the hash table. The hash spares nearly every comparison
// with another id, and its look-up when cells are moved.
type cell struct {
	hash uint32
	ref  uint32 // the slot + 1; 0 in an empty cell
}

func newRegister() *register {
	r := &register{free: -1, seed: maphash.MakeSeed()}
	r.resize(16)
	return r
}

// less orders by due time, then by the bytes of the id.
func (r *register) less(a, b item) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return r.ids[a.slot] < r.ids[b.slot]
}

func (r *register) hash(id core.ID) uint32 { return uint32(maphash.String(r.seed, string(id))) }

// next returns the cell that is probed after cell i.
func (r *register) next(i int) int { return (i + 1) & (len(r.cells) - 1) }

// slot returns the slot of id.
func (r *register) slot(id core.ID) (slot int32, ok bool) {
	i, ok := r.probe(id, r.hash(id))
	return int32(r.cells[i].ref) - 1, ok
}

// probe returns the cell of id, or else the empty one where it belongs.
func (r *register) probe(id core.ID, hash uint32) (i int, ok bool) {
	for i = int(hash >> r.shift); ; i = r.next(i) {
		switch c := r.cells[i]; {
		case c.ref == 0:
			return i, false
		case c.hash == hash && r.ids[c.ref-1] == id:
			return i, true
		}
	}
}

// warm reads the cells where the search for the entries' ids begins. Nothing
// depends on what it reads, so the processor waits for many of them at once, and
// finds them at hand when it comes to each: among a million entries a seventh of
// the time is saved.
func (r *register) warm(entries []core.Entry) {
	for i := range entries {
		r.warmed ^= r.cells[r.hash(entries[i].ID)>>r.shift].ref
	}
}

// enter returns the slot of id, a new one with no place yet if it had none.
func (r *register) enter(id core.ID) (slot int32, isNew bool) {
	if r.used >= len(r.cells)/4*3 {
		r.resize(2 * len(r.cells))
	}
	hash := r.hash(id)
	i, ok := r.probe(id, hash)
	if ok {
		return int32(r.cells[i].ref) - 1, false
	}
	if slot = r.free; slot >= 0 {
		r.free = int32(r.places[slot])
		r.ids[slot] = id
	} else {
		slot = int32(len(r.ids))
		r.ids = append(r.ids, id)
		r.places = append(r.places, 0)
	}
	r.cells[i] = cell{hash: hash, ref: uint32(slot) + 1}
	r.used++
	return slot, true
}

// leave frees the slot of id, which has one.
func (r *register) leave(id core.ID) {
	i, _ := r.probe(id, r.hash(id))
	slot := int32(r.cells[i].ref) - 1
	r.empty(i)
	r.ids[slot] = "" // lets the string go
	r.places[slot] = place(r.free)
	r.free = slot
}

// empty empties cell i and moves those behind it up that were probed past it, so
// that no mark of a deletion is needed.
func (r *register) empty(i int) {
	mask := len(r.cells) - 1
	for j := r.next(i); r.cells[j].ref != 0; j = r.next(j) {
		home := int(r.cells[j].hash >> r.shift)
		if (j-home)&mask >= (j-i)&mask {
			r.cells[i] = r.cells[j]
			i = j
		}
	}
	r.cells[i] = cell{}
	r.used--
}

// resize makes it n cells. As probing begins by the hash's upper bits, both the
// old cells and the new are gone through from front to back, which the processor
// is good at.
func (r *register) resize(n int) {
	old := r.cells
	r.cells = make([]cell, n)
	r.shift = 33 - bits.Len(uint(n))
	for _, c := range old {
		if c.ref == 0 {
			continue
		}
		i := int(c.hash >> r.shift)
		for r.cells[i].ref != 0 {
			i = r.next(i)
		}
		r.cells[i] = c
	}
}

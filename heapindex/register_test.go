package heapindex

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// Ids come and go at random, at times many and at times few, so that the cells
// grow, fill up to the bound, wrap around and close gaps; each id that is in
// keeps its slot, and no other is found.
func TestRegisterFindsWhatIsInAndNothingElse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const universe = 200
	reg, slots, peak := newRegister(), map[core.ID]int32{}, 0
	for step := range 4_000 {
		id := core.ID(fmt.Sprintf("id-%d", r.IntN(universe)))
		slot, isIn := slots[id]
		switch enters := r.IntN(4) < 1+2*(step/1_000%2); {
		case enters:
			got, isNew := reg.enter(id)
			require.Equal(t, !isIn, isNew, "%s at step %d", id, step)
			if isIn {
				require.Equal(t, slot, got)
			}
			slots[id] = got
		case isIn:
			reg.leave(id)
			delete(slots, id)
		}
		peak = max(peak, len(slots))
		require.Equal(t, len(slots), reg.used)
		require.LessOrEqual(t, 4*reg.used, 3*len(reg.cells))
		if step%10 > 0 {
			continue
		}
		for i := range universe {
			id := core.ID(fmt.Sprintf("id-%d", i))
			got, ok := reg.slot(id)
			want, isIn := slots[id]
			require.Equal(t, isIn, ok, "%s at step %d", id, step)
			if isIn {
				require.Equal(t, want, got, "%s at step %d", id, step)
			}
		}
	}
	require.Len(t, reg.ids, peak, "slots are used again")
	require.LessOrEqual(t, len(reg.cells), 512, "cells are used again")
}

// Ids that begin at the same few cells, at the end of the table and past it.
func TestRegisterClosesGapsAmongCollidingIDs(t *testing.T) {
	reg := newRegister()
	var crowd []core.ID
	for i := 0; len(crowd) < 8; i++ {
		id := core.ID(fmt.Sprintf("id-%d", i))
		if reg.hash(id)>>reg.shift >= 14 {
			crowd = append(crowd, id)
			_, _ = reg.enter(id)
		}
	}
	for len(crowd) > 0 {
		gone := rand.IntN(len(crowd))
		reg.leave(crowd[gone])
		_, ok := reg.slot(crowd[gone])
		require.False(t, ok)
		crowd = append(crowd[:gone], crowd[gone+1:]...)
		for _, id := range crowd {
			_, ok := reg.slot(id)
			require.True(t, ok, "%s among %q", id, crowd)
		}
	}
}

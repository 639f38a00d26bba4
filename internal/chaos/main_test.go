package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// TestMain makes this binary a worker where it was started as one.
func TestMain(m *testing.M) { fleet.Main(m, 2) }

const seedVariable = "DUECLAIM_CHAOS_SEED"

// seedOf is the seed of a run: the one that is asked for, or a new one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(seedVariable); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, seedVariable)
	}
	t.Logf("seed %d; again with %s=%d", seed, seedVariable, seed)
	return seed
}

// random is one of the independent streams of a seed.
func random(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// between is a random duration.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1))
}

// step is one fault of a schedule.
type step struct {
	kind  string
	count int                  // how often
	least time.Duration        // the pause after it is random, up to three times this
	do    func(*testing.T) int // injects it and returns how many faults that were
}

// perform injects each step's faults as often as it says, all kinds mixed by the
// seed, and counts what was injected. A kind of which there was none fails.
func (r *run) perform(steps []step) {
	r.t.Helper()
	var order []int
	for i, s := range steps {
		order = append(order, slices.Repeat([]int{i}, s.count)...)
	}
	r.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, i := range order {
		s := steps[i]
		r.faults[s.kind] += s.do(r.t)
		time.Sleep(between(r.rng, s.least, 3*s.least))
	}
	for _, s := range steps {
		require.GreaterOrEqual(r.t, r.faults[s.kind], s.count, "faults injected: %s", s.kind)
	}
}

// told lists counts, ordered by name.
func told(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(list, ", ")
}

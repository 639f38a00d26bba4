package unknowns

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stress says whether the large numbers are asked for.
func stress() bool { return os.Getenv("DUECLAIM_STRESS") != "" }

// seeded is what DUECLAIM_SEED names, or a new one, and logged.
func seeded(t *testing.T) (seed uint64, random *rand.Rand) {
	t.Helper()
	seed = uint64(rand.Uint32())
	if text := os.Getenv("DUECLAIM_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "DUECLAIM_SEED")
	}
	t.Logf("seed %d (again: DUECLAIM_SEED=%d)", seed, seed)
	return seed, rand.New(rand.NewPCG(seed, 0))
}

package history

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Options say how much to play. The zero value suits a backend on a server of its
// own: a few seconds under the race detector.
type Options struct {
	// Histories is how many are played, 0 for the default: 20, and 300 when the
	// environment has DUECLAIM_STRESS. New is called once for each (and again for
	// each try to make a failing one smaller), and what it opens stays open until the
	// end of the test: let it share one client and return an index or a store on a
	// queue of its own.
	Histories int
	// Steps is how many calls a history has on the average, 0 for the default of 40,
	// or of 50 InProcess.
	Steps int
	// InProcess says that a call costs microseconds. The default of Histories is
	// then 100, and 10,000 with DUECLAIM_STRESS; of concurrent histories, which cost
	// more to check than to play, 100 and 2,000.
	InProcess bool
	// ReadsBack weakens TestLinearizable for a store whose database can't say which
	// rows a write changed, so that it reads them back in a second step: a task that
	// the write changed and that others changed again before it was read may be
	// answered as it then is, though the write counts. It concerns claims (whose grant
	// is over by then), cancels, inserts, and batches of which not every item took
	// effect. Without it each call is to take effect, item by item, in one step.
	ReadsBack bool
	// MayFail is the share of the calls of TestLinearizable, also of those of one kind,
	// that may fail with an unknown outcome; 0 for the default of a quarter. More is for
	// a short run on a line that is broken on purpose.
	MayFail float64

	// Of the suite's own tests:
	shrink   time.Duration // how long to make a failing history smaller; 0: as rapid's flag has it
	hanging  time.Duration // how long a history may take; 0: hanging
	checking time.Duration // how long checking one may take; 0: checking
}

func (o Options) histories(concurrent bool) int {
	usual := 20
	switch stress := os.Getenv("DUECLAIM_STRESS") != ""; {
	case !o.InProcess && stress:
		usual = 300
	case o.InProcess && concurrent && stress:
		usual = 2_000
	case o.InProcess && concurrent:
		usual = 100
	case o.InProcess && stress:
		usual = 10_000
	case o.InProcess:
		usual = 100
	}
	n := cmp.Or(o.Histories, usual)
	if testing.Short() {
		n = max(1, n/5)
	}
	return n
}

func (o Options) mayFail() float64 { return cmp.Or(o.MayFail, 0.25) }

func (o Options) steps() int {
	usual := 40
	if o.InProcess {
		usual = 50
	}
	return cmp.Or(o.Steps, usual)
}

// seed returns the one to start from: that of -rapid.seed, else a new one.
func seed() uint64 {
	if f := flag.Lookup("rapid.seed"); f != nil {
		if n, err := strconv.ParseUint(f.Value.String(), 0, 64); err == nil && n != 0 {
			return n
		}
	}
	return uint64(rand.Uint32()) + 1
}

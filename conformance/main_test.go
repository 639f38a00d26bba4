package conformance_test

import (
	"flag"
	"os"
	"testing"
)

// Tests that are marked as parallel, those of the pairs, wait most of their
// time: for due times, sweeps and ends of leases. More of them than there are
// cores may do so at once.
const parallel = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

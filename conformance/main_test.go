package conformance_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Tests that are marked as parallel, those of the pairs, wait most of their
// time: for due times, sweeps and ends of leases. More of them than there are
// cores may do so at once.
const parallel = 12

func TestMain(m *testing.M) {
	flag.Parse()
	if err := raiseParallel(flag.CommandLine); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// raiseParallel raises -parallel, unless whoever runs the tests chose a number.
func raiseParallel(flags *flag.FlagSet) error {
	chosen := false
	flags.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	n, err := strconv.Atoi(flags.Lookup("test.parallel").Value.String())
	if err != nil || chosen || n >= parallel {
		return err
	}
	return flags.Set("test.parallel", strconv.Itoa(parallel))
}

func TestOnlyADefaultOfParallelIsRaised(t *testing.T) {
	for _, c := range []struct {
		cores int
		args  []string
		want  int
	}{
		{2, nil, parallel},
		{2, []string{"-test.parallel=1"}, 1},
		{2, []string{"-test.parallel=2"}, 2},
		{16, nil, 16},
		{16, []string{"-test.parallel=1"}, 1},
	} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		got := flags.Int("test.parallel", c.cores, "")
		require.NoError(t, flags.Parse(c.args))
		require.NoError(t, raiseParallel(flags))
		assert.Equal(t, c.want, *got, "%d cores, %v", c.cores, c.args)
	}
}

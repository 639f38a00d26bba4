package scenarios

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// parallel is how many scenarios are under way at once. They wait most of their
// time, for due times, sweeps and ends of leases, so more of them than there are
// cores.
const parallel = "16"

// TestMain makes this binary a worker where it was started as one.
func TestMain(m *testing.M) {
	if os.Getenv(workerRole) != "" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	redis.SetLogger(silent{}) // servers are killed here
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", parallel); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// rounds is few, or many when there is time.
func rounds(few, many int) int {
	if os.Getenv("DUECLAIM_STRESS") != "" {
		return many
	}
	return few
}

// scale is rounds for durations.
func scale(short, whole time.Duration) time.Duration {
	return time.Duration(rounds(int(short), int(whole)))
}

// crowd is how many times more processes want to run than a busy run of all tests
// has, on Linux; at least 1.
func crowd() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	var load float64
	_, _ = fmt.Sscan(string(text), &load)
	return max(1, load/float64(4*runtime.NumCPU()))
}

// bound is d, or more on a machine that has more to run than it can: what is
// late there says nothing.
func bound(d time.Duration) time.Duration { return time.Duration(float64(d) * crowd()) }

// until polls a condition.
func until(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// figure reports what a scenario measured, for the report at the end of a run.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	t.Log(text)
	t.Attr("dueclaim.figure", t.Name()[len("Test"):]+": "+text)
}

// inTime measures up to three times: other programs on the machine can make one
// measurement late, but not each.
func inTime(t *testing.T, measure func(t *testing.T) (summary string, ok bool)) {
	t.Helper()
	const tries = 3
	for try := 1; ; try++ {
		summary, ok := measure(t)
		switch {
		case ok:
			figure(t, "%s", summary)
			return
		case t.Failed(), try == tries:
			require.FailNow(t, "out of bounds", "%d times, at last: %s", try, summary)
		}
		t.Logf("out of bounds (%d): %s", try, summary)
	}
}

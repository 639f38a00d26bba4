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

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// parallel is how many scenarios are under way at once. They wait most of their
// time, for due times, sweeps and ends of leases, so more of them than there are
// cores.
const parallel = "8"

// TestMain makes this binary a worker where it was started as one.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // servers are killed here
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", parallel); err != nil {
			panic(err)
		}
	}
	fleet.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// scale is fleet.Rounds for durations.
func scale(short, whole time.Duration) time.Duration {
	return time.Duration(fleet.Rounds(int(short), int(whole)))
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

// figure reports what a scenario measured, for the report at the end of a run.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	t.Log(text)
	t.Attr("dueclaim.figure", t.Name()[len("Test"):]+": "+text)
}

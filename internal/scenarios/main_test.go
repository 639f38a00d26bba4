package scenarios

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// TestMain makes this binary a worker where it was started as one.
func TestMain(m *testing.M) { fleet.Main(m, 8) }

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

// Package fleet runs workers as real processes, for tests that kill, stop and
// starve them on real servers, and audits what they did.
//
// A test binary becomes a worker when it is started as one:
//
//	func TestMain(m *testing.M) { fleet.Main(m, 4) }
//
// Its tests then work on a [Bench] (a pair of backends of their own, with a
// producer), [Start] workers with [Orders], and go by the [Event]s that those say.
package fleet

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Main runs the tests of a binary, or makes it a worker where it was started as
// one: call it from TestMain. Unless -parallel says otherwise, so many tests are under
// way at once: they wait most of their time, for due times, sweeps and ends of
// leases, so more of them than there are cores.
func Main(m *testing.M, parallel int) {
	redis.SetLogger(silent{}) // servers are killed here
	if os.Getenv(workerRole) != "" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	m.Run()
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Stress says whether there is time for more rounds.
func Stress() bool { return os.Getenv("DUECLAIM_STRESS") != "" }

// Rounds is few, or many when there is time.
func Rounds(few, many int) int {
	if Stress() {
		return many
	}
	return few
}

// OnEach runs a test on several pairs of backends, side by side where they mostly
// wait. It doesn't use t.Parallel, whose width is the number of cores.
func OnEach(t *testing.T, sideBySide bool, pairs []Pair, test func(t *testing.T, p Pair)) {
	t.Helper()
	var all sync.WaitGroup
	for _, p := range pairs {
		run := func() {
			t.Run(p.Name(), func(t *testing.T) {
				t.Attr("dueclaim.backend", "pair:"+p.Name())
				test(t, p)
			})
		}
		if sideBySide {
			all.Go(run)
		} else {
			run()
		}
	}
	all.Wait()
}

// InTime measures up to three times: other programs on the machine can make one
// measurement late, but not each. It logs what every one gave and returns what
// the good one did.
func InTime(t *testing.T, measure func(t *testing.T, try int) (summary string, ok bool)) string {
	t.Helper()
	const tries = 3
	for try := 1; ; try++ {
		summary, ok := measure(t, try)
		t.Logf("measured (%d), %s: %s", try, t.Name(), summary)
		switch {
		case ok:
			return summary
		case t.Failed(), try == tries:
			t.Fatalf("out of bounds, %d times", try)
		}
	}
}

// Until polls a condition of other processes. It must be called from the test's
// own goroutine.
func Until(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	if !Poll(patience, ok) {
		t.Fatalf("not within %v: %s", patience, what)
	}
}

// Poll is Until for other goroutines: it says whether the condition came true.
func Poll(patience time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

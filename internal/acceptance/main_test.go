package acceptance

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// TestMain makes this binary a worker where it was started as one.
func TestMain(m *testing.M) {
	if os.Getenv(workerRole) != "" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// stress says whether there is time for more rounds.
func stress() bool { return os.Getenv("DUECLAIM_STRESS") != "" }

// rounds is few, or many when there is time.
func rounds(few, many int) int {
	if stress() {
		return many
	}
	return few
}

// onEach runs a test on several pairs of backends, side by side where they mostly
// wait. It doesn't use t.Parallel, whose width is the number of cores.
func onEach(t *testing.T, sideBySide bool, pairs []pair, test func(t *testing.T, p pair)) {
	t.Helper()
	var all sync.WaitGroup
	for _, p := range pairs {
		run := func() {
			t.Run(p.name(), func(t *testing.T) {
				t.Attr("dueclaim.backend", "pair:"+p.name())
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

// inTime measures up to three times: other programs on the machine can make one
// measurement late, but not each. It says what every one gave.
func inTime(t *testing.T, measure func(t *testing.T, try int) (summary string, ok bool)) {
	t.Helper()
	const tries = 3
	for try := 1; ; try++ {
		summary, ok := measure(t, try)
		t.Logf("measured (%d), %s: %s", try, t.Name(), summary)
		switch {
		case ok:
			return
		case t.Failed(), try == tries:
			t.Fatalf("out of bounds, %d times", try)
		}
	}
}

// until polls a condition of other processes.
func until(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

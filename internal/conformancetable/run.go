package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// testRun is what one run of the tests says about the conformance suite.
type testRun struct {
	dir    string    // where it ran
	argv   []string  // what ran
	began  time.Time // the first event
	ended  map[string]string
	tests  map[testKey]*test
	order  []*test
	broken []string // packages that didn't build, or fell over in the middle
}

type testKey struct{ pkg, name string }

// test is one test or subtest.
type test struct {
	testKey
	outcome  string // pass, skip or fail; "" where no end was seen
	attrs    map[string]string
	backends []string
	notMade  []string // "server: reason", from the output of a skipped test
}

// event is one line of go test -json, or testreport's first line.
type event struct {
	Time                  time.Time
	Action, Package, Test string
	Output, Key, Value    string
	Dir                   string
	Argv                  []string
}

// notTested matches what a test says that can't have its server.
var notTested = regexp.MustCompile(`NOT tested: ([a-z]+): (.*)`)

// readRun reads the file that testreport -raw leaves.
func readRun(file io.Reader) (*testRun, error) {
	r := &testRun{ended: map[string]string{}, tests: map[testKey]*test{}}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				r.take(e)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	r.findBroken()
	return r, nil
}

func (r *testRun) take(e event) {
	switch {
	case e.Action == "command":
		r.dir, r.argv = e.Dir, e.Argv
		return
	case e.Package == "":
		return
	case r.began.IsZero():
		r.began = e.Time
	}
	if e.Test == "" {
		if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
			r.ended[e.Package] = e.Action
		}
		return
	}
	key := testKey{e.Package, e.Test}
	t := r.tests[key]
	if t == nil {
		t = &test{testKey: key, attrs: map[string]string{}}
		r.tests[key] = t
		r.order = append(r.order, t)
	}
	switch e.Action {
	case "pass", "skip", "fail":
		t.outcome = e.Action
	case "attr":
		t.attrs[e.Key] = e.Value
		if e.Key == "dueclaim.backend" {
			t.backends = append(t.backends, e.Value)
		}
	case "output":
		if m := notTested.FindStringSubmatch(e.Output); m != nil {
			t.notMade = append(t.notMade, m[1]+": "+strings.TrimSpace(m[2]))
		}
	}
}

// findBroken finds the packages of which not all tests can have been seen.
func (r *testRun) findBroken() {
	began, broken := map[string]bool{}, map[string]bool{}
	for _, t := range r.order {
		began[t.pkg] = true
		if t.outcome == "" {
			broken[t.pkg] = true
		}
	}
	for pkg, action := range r.ended {
		if action == "fail" && !began[pkg] {
			broken[pkg] = true
		}
	}
	r.broken = slices.Sorted(maps.Keys(broken))
}

// whole fails unless all tests of all these packages were run to their end.
func (r *testRun) whole(packages []string) error {
	if len(r.argv) == 0 {
		return errors.New("the last test run is none of make test")
	}
	for _, arg := range r.argv {
		for _, filter := range []string{"-run", "-skip", "-short", "-list"} {
			if name, _, _ := strings.Cut(strings.Replace(arg, "--", "-", 1), "="); name == filter {
				return fmt.Errorf("the last test run left tests out (%s)", arg)
			}
		}
	}
	for _, pkg := range packages {
		if r.ended[pkg] == "" {
			return fmt.Errorf("the last test run has no end of %s: it ran %q", pkg, strings.Join(r.argv, " "))
		}
	}
	if len(r.broken) > 0 {
		return fmt.Errorf("the last test run fell over in %s", strings.Join(r.broken, ", "))
	}
	return nil
}

// backendsOf are the backends named by a test and by those that it stands below.
func (r *testRun) backendsOf(t *test) []string {
	list := slices.Clone(t.backends)
	for cut := strings.LastIndexByte(t.name, '/'); cut > 0; cut = strings.LastIndexByte(t.name[:cut], '/') {
		if above := r.tests[testKey{t.pkg, t.name[:cut]}]; above != nil {
			list = append(list, above.backends...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// excuses are the servers that could not be had, with the reason.
func (r *testRun) excuses() map[string]string {
	reasons := map[string]string{}
	for _, t := range r.order {
		for _, line := range t.notMade {
			if server, why, _ := strings.Cut(line, ": "); t.outcome == "skip" && reasons[server] == "" {
				reasons[server] = why
			}
		}
	}
	return reasons
}

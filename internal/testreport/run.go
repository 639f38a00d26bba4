package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// testRun gathers the events of one run and prints each package as it ends.
type testRun struct {
	out      io.Writer
	packages map[string]*testPackage
	builds   map[string][]string // what the compiler said, by import path
	tests    []*testCase         // all, in the order in which they began
	broken   []string            // packages that failed without a failed test
	failures []string            // "package Test"
	caught   []string            // broken doubles, as tests count them
	figures  []string            // what tests measured
}

type testPackage struct {
	name   string
	began  time.Time
	output []string
	tests  map[string]*testCase
	order  []*testCase
	done   bool
}

func newRun(out io.Writer) *testRun {
	return &testRun{out: out, packages: map[string]*testPackage{}, builds: map[string][]string{}}
}

// line takes one line of output of go test and says whether it printed something.
func (r *testRun) line(line []byte) bool {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		fmt.Fprintf(r.out, "%s", line) // not an event: go itself complains
		return true
	}
	if e.Action == "build-output" {
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
		return false
	}
	if e.Package == "" {
		return false
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &testPackage{name: e.Package, began: time.Now(), tests: map[string]*testCase{}}
		r.packages[e.Package] = p
	}
	if e.Test == "" {
		return r.packageEvent(p, e)
	}
	r.testEvent(p, e)
	return false
}

func (r *testRun) testEvent(p *testPackage, e event) {
	t := r.testOf(p, e.Test)
	switch e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "attr":
		switch e.Key {
		case backendKey:
			t.backends = append(t.backends, e.Value)
		case caughtKey:
			r.caught = append(r.caught, e.Value)
		case figureKey:
			r.figures = append(r.figures, e.Value)
		}
	case "pass":
		t.outcome = passed
		t.output = nil // nobody will ask
	case "skip":
		t.outcome = skipped
	case "fail":
		t.outcome = failed
	}
}

// testOf finds a test, or makes it and hangs it below its parent, which began
// before. A subtest's own name may have slashes, so the parent is the longest
// beginning of the name that is a test.
func (r *testRun) testOf(p *testPackage, name string) *testCase {
	if t := p.tests[name]; t != nil {
		return t
	}
	t := &testCase{pkg: p.name, name: name}
	p.tests[name] = t
	p.order = append(p.order, t)
	r.tests = append(r.tests, t)
	for cut := strings.LastIndexByte(name, '/'); cut > 0; cut = strings.LastIndexByte(name[:cut], '/') {
		if parent := p.tests[name[:cut]]; parent != nil {
			parent.children = append(parent.children, t)
			break
		}
	}
	return t
}

func (r *testRun) packageEvent(p *testPackage, e event) bool {
	switch e.Action {
	case "output":
		p.output = append(p.output, e.Output)
		return false
	case "skip": // it has no tests
		p.done = true
	case "pass", "fail":
		p.done = true
		r.endPackage(p, e)
		return true
	}
	return false
}

// endUnfinished ends the packages that were cut off.
func (r *testRun) endUnfinished() {
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		if p := r.packages[name]; !p.done {
			p.done = true
			p.output = append(p.output, "it was cut off\n")
			r.endPackage(p, event{Action: "fail", Elapsed: time.Since(p.began).Seconds()})
		}
	}
}

// endPackage prints a package's line, and its failures.
func (r *testRun) endPackage(p *testPackage, e event) {
	var names []*testCase
	for _, t := range p.order {
		if t.outcome == unfinished {
			t.outcome = failed // the process broke down in it, or before it
		}
		if t.ownFailure() {
			names = append(names, t)
		}
	}
	c := count(p.order)
	if e.Action == "fail" && len(names) == 0 {
		r.broken = append(r.broken, p.name)
	}
	word := map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action]
	fmt.Fprintf(r.out, "%-5s %-45s %7.1f s  %s\n", word, short(p.name), e.Elapsed, c)
	if e.Action == "fail" {
		r.explain(p, names)
	}
}

// explain prints the output of the tests that failed, and what was said outside of tests.
func (r *testRun) explain(p *testPackage, names []*testCase) {
	for _, t := range names {
		r.failures = append(r.failures, short(p.name)+" "+t.name)
		// How go test orders its output ("=== RUN") is of no use here.
		said := slices.DeleteFunc(t.output, func(line string) bool { return strings.HasPrefix(line, "=== ") })
		fmt.Fprintf(r.out, "\n--- %s %s\n%s", short(p.name), t.name, excerpt(said))
	}
	for path, output := range r.builds {
		// A test package's build is named "path [path.test]".
		if first, _, _ := strings.Cut(path, " "); strings.TrimSuffix(first, "_test") == p.name || strings.Contains(path, "["+p.name+".test]") {
			fmt.Fprint(r.out, excerpt(output))
			delete(r.builds, path)
		}
	}
	said := slices.DeleteFunc(p.output, func(line string) bool {
		return line == "FAIL\n" || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "coverage:")
	})
	fmt.Fprintln(r.out, excerpt(said))
}

// excerpt keeps the beginning and the end of a long output: a data race or a
// panic stands at either.
func excerpt(lines []string) string {
	const head, end = 80, 160
	if cut := len(lines) - head - end; cut > 0 {
		lines = slices.Concat(lines[:head], []string{fmt.Sprintf("    … %d lines left out …\n", cut)}, lines[len(lines)-end:])
	}
	return strings.Join(lines, "")
}

// stillRunning is the sign of life.
func (r *testRun) stillRunning() {
	var names []string
	for _, p := range r.packages {
		if !p.done {
			names = append(names, fmt.Sprintf("%s %.0f s", short(p.name), time.Since(p.began).Seconds()))
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		names = []string{"the compiler"}
	}
	fmt.Fprintf(r.out, "…     running: %s\n", strings.Join(names, ", "))
}

// short leaves out what all our packages have in front.
func short(pkg string) string { return strings.TrimPrefix(pkg, "github.com/dueclaim/dueclaim/") }

// counts are numbers of tests. Only tests without subtests count, and those
// that failed by themselves.
type counts struct{ passed, failed, skipped int }

func count(tests []*testCase) counts {
	var c counts
	for _, t := range tests {
		switch {
		case t.ownFailure():
			c.failed++
		case len(t.children) > 0:
		case t.outcome == passed:
			c.passed++
		case t.outcome == skipped:
			c.skipped++
		}
	}
	return c
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

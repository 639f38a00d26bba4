package main

// event is one line of go test -json: "go doc test2json" tells the fields.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output and build-fail
	Test       string
	Elapsed    float64 // seconds
	Output     string
	Key, Value string // of attr
}

// backendKey is the attribute by which a test names the backend it exercises.
const backendKey = "dueclaim.backend"

// caughtKey is the attribute by which a test says how many broken doubles it
// caught, as in "broken indexes: 28 of 28".
const caughtKey = "dueclaim.caught"

// figureKey is the attribute by which a test says what it measured, in a line.
const figureKey = "dueclaim.figure"

type outcome int

const (
	unfinished outcome = iota // no end seen: the process broke down in it
	passed
	failed
	skipped
)

// testCase is one test or subtest.
type testCase struct {
	pkg, name string
	outcome   outcome
	backends  []string // as in "store:mariadb"
	children  []*testCase
	output    []string
}

// leaves yields the tests below t that have no subtests, t itself if it has none.
func (t *testCase) leaves(yield func(*testCase) bool) bool {
	if len(t.children) == 0 {
		return yield(t)
	}
	for _, child := range t.children {
		if !child.leaves(yield) {
			return false
		}
	}
	return true
}

// ownFailure says whether t failed by itself and not because of a subtest.
func (t *testCase) ownFailure() bool {
	if t.outcome != failed {
		return false
	}
	for _, child := range t.children {
		if child.outcome == failed {
			return false
		}
	}
	return true
}

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/internal/backends"
)

// row is a line of the closing table.
type row struct {
	backends.Row
	result string
	ok     bool // FAILED or not tested: false
}

// rows are all that the table has to name.
func rows() []row {
	var all []row
	for _, r := range backends.Rows() {
		all = append(all, row{Row: r})
	}
	return all
}

// notTested matches the message of a test that can't have its server.
var notTested = regexp.MustCompile(`NOT tested: ([a-z]+): (.*)`)

// skips are the reasons given by skipped tests, by server.
func skips(tests []*testCase) map[string]string {
	reasons := map[string]string{}
	for _, t := range tests {
		if t.outcome != skipped {
			continue
		}
		if match := notTested.FindStringSubmatch(strings.Join(t.output, "")); match != nil {
			reasons[match[1]] = cmp.Or(reasons[match[1]], strings.TrimSpace(match[2]))
		}
	}
	return reasons
}

// judge fills in a row's result from the tests that name it.
func (r *row) judge(tests []*testCase, reasons map[string]string) {
	var c counts
	var failures []string
	var below []*testCase
	for _, t := range tests {
		if !slices.Contains(t.backends, r.String()) {
			continue
		}
		if t.outcome == failed {
			failures = append(failures, short(t.pkg)+" "+t.name)
		}
		t.leaves(func(leaf *testCase) bool {
			if !slices.Contains(below, leaf) {
				below = append(below, leaf)
			}
			return true
		})
	}
	c = count(below)
	own := skips(below)
	switch {
	case len(failures) > 0:
		r.result = "FAILED: " + failures[0]
		if more := len(failures) - 1; more > 0 {
			r.result += fmt.Sprintf(" and %d more", more)
		}
	case c.passed == 0:
		r.result = "NOT tested: " + cmp.Or(r.reason(own), r.reason(reasons), anyReason(below), "no test ran")
	default:
		r.ok = true
		r.result = fmt.Sprintf("passed (%d tests", c.passed)
		if c.skipped > 0 {
			r.result += fmt.Sprintf(", %d skipped", c.skipped)
			if why := r.reason(own); why != "" {
				r.result += ": " + why
			}
		}
		r.result += ")"
	}
}

// reason is why the first of the row's servers could not be had.
func (r *row) reason(reasons map[string]string) string {
	for _, need := range r.Needs {
		if why := reasons[string(need)]; why != "" {
			return why
		}
	}
	return ""
}

// anyReason is what a skipped test said last.
func anyReason(tests []*testCase) string {
	for _, t := range tests {
		for _, line := range slices.Backward(t.output) {
			if text := strings.TrimSpace(line); t.outcome == skipped && text != "" && !strings.HasPrefix(text, "---") && !strings.HasPrefix(text, "===") {
				return text
			}
		}
	}
	return ""
}

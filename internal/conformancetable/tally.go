package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/internal/backends"
)

// tally is how one backend fared in the cases of a group.
type tally struct {
	passed, weaker, skipped, notProvided, notRun int
	reasons                                      []string // of skipped cases, each once
	lacks                                        []string // capabilities, each once
}

func (t *tally) add(result string) {
	switch {
	case result == "":
		t.notRun++
	case strings.HasPrefix(result, passed):
		t.passed++
	case strings.HasPrefix(result, weakerBy):
		t.weaker++
	case strings.HasPrefix(result, notMeantFor):
		return // nothing to prove
	case strings.HasPrefix(result, notProvided):
		t.notProvided++
		t.lacks = addOnce(t.lacks, strings.TrimPrefix(result, notProvided))
	default:
		t.skipped++
	}
	if why := reason(result); why != "" {
		t.reasons = addOnce(t.reasons, why)
	}
}

// reason is what an adapter gave for a skip, "" where there is none.
func reason(result string) string {
	if why, ok := strings.CutPrefix(result, elsewhereToo); ok {
		return "in one configuration: " + why
	}
	if why, ok := strings.CutPrefix(result, skippedBy); ok {
		return why
	}
	if why, ok := strings.CutPrefix(result, weakerBy); ok {
		return why
	}
	return ""
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// String is the cell's text, without the marks of its footnotes.
func (t *tally) String() string {
	var parts []string
	say := func(n int, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	say(t.passed, "✓ %d")
	say(t.weaker, "%d weaker")
	say(t.skipped, "%d skipped")
	switch {
	case t.notProvided > 0 && t.passed == 0:
		parts = append(parts, "not provided")
	default:
		say(t.notProvided, "%d not provided")
	}
	switch {
	case t.notRun > 0 && t.passed == 0:
		parts = append(parts, "not tested")
	default:
		say(t.notRun, "%d not tested")
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// groups are the names of a class's groups, in order.
func (r *results) groups(class string) []string {
	var names []string
	for _, c := range r.Cases {
		if c.Class == class {
			names = addOnce(names, c.group())
		}
	}
	return names
}

// tally counts one row's results in a group, in all groups where it is "".
func (r *results) tally(row backends.Row, group string) *tally {
	var t tally
	for _, c := range r.Cases {
		if c.Class == row.Class && (group == "" || c.group() == group) {
			t.add(c.Results[row.Name])
		}
	}
	return &t
}

// rowsOf are the rows of a class.
func rowsOf(class string) []backends.Row {
	return slices.DeleteFunc(backends.Rows(), func(r backends.Row) bool { return r.Class != class })
}

package main

import (
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/internal/backends"
)

// merge fills in, from the committed table, what this machine could not test: a
// backend one of whose servers it has not keeps its committed results. It
// returns a line for each such backend.
func (r *results) merge(committed *results, excuses map[string]string) (kept []string) {
	for _, row := range backends.Rows() {
		why := excuse(row, excuses)
		if why == "" {
			continue
		}
		n := 0
		for _, c := range r.Cases {
			old := committed.find(c.Class, c.Name)
			if c.Class == row.Class && c.Results[row.Name] == "" && old != nil && old.Results[row.Name] != "" {
				c.Results[row.Name] = old.Results[row.Name]
				n++
			}
		}
		kept = append(kept, fmt.Sprintf("%s was NOT tested (%s): %d results stay as they were committed", row, why, n))
	}
	return kept
}

func excuse(row backends.Row, excuses map[string]string) string {
	for _, need := range row.Needs {
		if why := excuses[string(need)]; why != "" {
			return why
		}
	}
	return ""
}

// compare returns how the committed table differs from r, a line each. Results
// that the committed table lacks for a backend that nobody must have are no
// difference, since whoever wrote it may have lacked the server: they are
// taken out of r and named in notes.
func (r *results) compare(committed *results) (differences, notes []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	for _, line := range r.Caught {
		if !slices.Contains(committed.Caught, line) {
			differ("this run caught %s, the table has %q", line, committed.Caught)
		}
	}
	for _, line := range committed.Caught {
		if !slices.Contains(r.Caught, line) {
			differ("the table says caught %s, this run %q", line, r.Caught)
		}
	}
	for _, old := range committed.Cases {
		if r.find(old.Class, old.Name) == nil {
			differ("%s case %s is in the table, but no test ran it", old.Class, old.Name)
		}
	}
	missing := map[string]int{}
	for _, c := range r.Cases {
		old := committed.find(c.Class, c.Name)
		if old == nil {
			differ("%s case %s is not in the table", c.Class, c.Name)
			continue
		}
		if old.Rule != c.Rule {
			differ("%s case %s: the table has the rule %q, the suite %q", c.Class, c.Name, old.Rule, c.Rule)
		}
		for _, row := range backends.Rows() {
			was, is := old.Results[row.Name], c.Results[row.Name]
			switch {
			case row.Class != c.Class || was == is:
			case was == "" && len(row.Needs) > 0 && !row.Required():
				missing[row.String()]++
				delete(c.Results, row.Name)
			case is == "":
				differ("%s %s: the table says %q, but no test ran it", row, c.Name, was)
			case was == "":
				differ("%s %s: the table says nothing, this run %q", row, c.Name, is)
			default:
				differ("%s %s: the table says %q, this run %q", row, c.Name, was, is)
			}
		}
	}
	for _, row := range backends.Rows() {
		if n := missing[row.String()]; n > 0 {
			notes = append(notes, fmt.Sprintf("%s: the table has no result yet for %d cases that ran here: make conformance adds them", row, n))
		}
	}
	return differences, notes
}

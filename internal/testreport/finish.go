package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// most is how many failures are named again at the end.
const most = 40

// finish prints the totals and, last, the table of backends. It returns false
// where the run fails for a reason that go test doesn't know.
func finish(out io.Writer, r *testRun) bool {
	c := count(r.tests)
	c.failed += len(r.broken)
	problems := unknownNames(r.tests)
	if c == (counts{}) {
		problems = append(problems, "no test ran")
	}
	reasons := skips(r.tests)
	table := rows()
	for i := range table {
		row := &table[i]
		row.judge(r.tests, reasons)
		if row.Required() && strings.HasPrefix(row.result, "NOT tested") {
			problems = append(problems, fmt.Sprintf("%s %s is required, but was NOT tested", row.Class, row.Name))
		}
	}
	for path, output := range r.builds { // of packages without tests
		fmt.Fprintf(out, "%s\n%s", path, excerpt(output))
	}
	fmt.Fprintln(out)
	for i, name := range r.failures {
		if i == most {
			fmt.Fprintf(out, "failed: … and %d more\n", len(r.failures)-most)
			break
		}
		fmt.Fprintln(out, "failed:", name)
	}
	for _, name := range r.broken {
		fmt.Fprintln(out, "failed:", short(name), "(outside of its tests)")
	}
	for _, problem := range problems {
		fmt.Fprintln(out, "failed:", problem)
	}
	fmt.Fprintf(out, "%s\n\n", c)
	for _, line := range r.caught {
		fmt.Fprintln(out, line, "caught")
	}
	slices.Sort(r.figures)
	for _, line := range r.figures {
		fmt.Fprintln(out, "figure:", line)
	}
	if len(r.caught)+len(r.figures) > 0 {
		fmt.Fprintln(out)
	}
	for _, row := range table {
		fmt.Fprintf(out, "%-6s %-34s %s\n", row.Class, row.Name, row.result)
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !inTable(table, name) {
			fmt.Fprintf(out, "%-6s %-34s NOT tested: %s\n", "with", name, reasons[name])
		}
	}
	return len(problems) == 0
}

// inTable says whether the table has a row that stands or falls with a server.
func inTable(table []row, name string) bool {
	return slices.ContainsFunc(table, func(r row) bool { return slices.Contains(r.Needs, server.Kind(name)) })
}

// unknownNames finds names that the table doesn't have: a misspelt one would
// make a backend look untested, or required in vain.
func unknownNames(tests []*testCase) []string {
	known := map[string]bool{}
	for _, r := range rows() {
		known[r.String()] = true
	}
	var problems []string
	for _, t := range tests {
		for _, name := range t.backends {
			if !known[name] {
				known[name] = true // once is enough
				problems = append(problems, fmt.Sprintf("%s %s names an unknown backend: %q", short(t.pkg), t.name, name))
			}
		}
	}
	servers := map[string]bool{}
	for _, k := range server.Kinds() {
		servers[string(k)] = true
	}
	for _, r := range rows() {
		servers[r.Name] = true // parts without a server can be required too
		for _, need := range r.Needs {
			servers[string(need)] = true
		}
	}
	for _, name := range strings.FieldsFunc(os.Getenv("DUECLAIM_REQUIRE"), func(c rune) bool { return c == ',' || c == ' ' }) {
		if !servers[name] {
			problems = append(problems, fmt.Sprintf("DUECLAIM_REQUIRE names an unknown server: %q", name))
		}
	}
	return problems
}

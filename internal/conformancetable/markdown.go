package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/internal/backends"
)

var titles = map[string]string{
	backends.Index:  "Time indexes",
	backends.Store:  "Claim stores",
	backends.Table:  "Users' own tables, in each mode",
	backends.Pair:   "Pairs of an index and a store, with the scheduler on top",
	backends.Double: "Statements against scripts, without a server",
}

const opening = `<!-- Written by make conformance. Don't edit: change the suite or a backend, and run it again. -->
# What is proven, backend by backend

![The table below as a picture](conformance.svg)

Each number counts cases of the [conformance suite](adapter.md#the-suite) that
passed; a case checks one rule of the contract, and all rules are spelt out
further down. Most backends go through the suite in several configurations (drivers,
modes, finished rows kept or deleted): a case counts once, as passed when it passed
in every configuration that it is meant for. CI runs all of it on every change, on
real servers (MySQL and Valkey where they can be had) and under the race detector,
and fails when this page says anything else than that run.

*Not provided*: an optional capability that the backend neither declares nor has
(both are checked), or a thing that it doesn't have, such as rows that another
transaction can lock. *Weaker*: a mode of a user's own table doesn't promise this; the case was run and failed,
as it must. *Skipped*: the adapter can't keep the rule, and says why. *Not
tested*: no such server was at hand, or no test asks this backend. –: nothing to prove.
`

const doubles = `
## Who tests the suite

Backends that are broken on purpose, each in one way, and each must fail the case meant for
it. Broken indexes and stores run the suite without its heavy cases, and may fail that case's
group and the further ones (for some bugs all) that the tests list for them; broken pairs run
their own case only; and those that histories must find out have no groups.

`

// footnotes numbers reasons in the order of their first use.
type footnotes struct{ texts []string }

func (f *footnotes) mark(reasons ...string) string {
	var marks strings.Builder
	for _, why := range reasons {
		f.texts = addOnce(f.texts, why)
		for i, text := range f.texts {
			if text == why {
				fmt.Fprintf(&marks, " <sup>%d</sup>", i+1)
			}
		}
	}
	return marks.String()
}

// markdown renders the page.
func (r *results) markdown() []byte {
	var out bytes.Buffer
	var notes footnotes
	out.WriteString(opening)
	for _, class := range backends.Classes {
		r.summary(&out, class, &notes)
	}
	if len(r.Caught) > 0 {
		out.WriteString(doubles)
		for _, line := range r.Caught {
			fmt.Fprintf(&out, "- %s caught\n", line)
		}
	}
	out.WriteString("\n## Every rule\n\n✓ passed, – not provided or nothing to prove, w weaker, s skipped, · not tested.\n")
	for _, class := range backends.Classes {
		r.rules(&out, class, &notes)
	}
	if len(notes.texts) > 0 {
		out.WriteString("\n## Reasons\n\n")
		for i, text := range notes.texts {
			fmt.Fprintf(&out, "%d. %s\n", i+1, escape(text))
		}
	}
	return out.Bytes()
}

// summary is the table of a class's backends and groups.
func (r *results) summary(out *bytes.Buffer, class string, notes *footnotes) {
	groups := r.groups(class)
	if len(groups) == 0 {
		return
	}
	fmt.Fprintf(out, "\n## %s\n\n| | %s | all |\n|---|%s---|\n", titles[class], strings.Join(groups, " | "), strings.Repeat("---|", len(groups)))
	for _, row := range rowsOf(class) {
		fmt.Fprintf(out, "| %s |", row.Name)
		for _, group := range groups {
			t := r.tally(row, group)
			fmt.Fprintf(out, " %s%s |", t, notes.mark(t.reasons...))
		}
		fmt.Fprintf(out, " %s |\n", r.tally(row, ""))
	}
}

// rules are the tables of a class's rules, one a group.
func (r *results) rules(out *bytes.Buffer, class string, notes *footnotes) {
	rows := rowsOf(class)
	for _, group := range r.groups(class) {
		fmt.Fprintf(out, "\n### %s: %s\n\n| case | rule |", class, group)
		for _, row := range rows {
			fmt.Fprintf(out, " %s |", strings.Replace(row.Name, "+", " +<br>", 1))
		}
		fmt.Fprintf(out, "\n|---|---|%s\n", strings.Repeat("---|", len(rows)))
		for _, c := range r.Cases {
			if c.Class != class || c.group() != group {
				continue
			}
			fmt.Fprintf(out, "| `%s` | %s |", c.Name, escape(c.Rule))
			for _, row := range rows {
				result := c.Results[row.Name]
				fmt.Fprintf(out, " %s%s |", symbol(result), notes.mark(nonEmpty(reason(result))...))
			}
			out.WriteString("\n")
		}
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// symbol is the shortest form of a result.
func symbol(result string) string {
	switch {
	case result == "":
		return "·"
	case strings.HasPrefix(result, passed):
		return "✓"
	case strings.HasPrefix(result, notProvided), strings.HasPrefix(result, notMeantFor):
		return "–"
	case strings.HasPrefix(result, weakerBy):
		return "w"
	default:
		return "s"
	}
}

// escape keeps text from being read as Markdown, in a table's cell above all.
var escape = strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`, "`", "\\`").Replace

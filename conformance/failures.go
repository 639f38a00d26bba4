package conformance

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/conformance/internal/owner"
)

// text is what a failed case says: the rule that was broken, then what was wanted
// and what came, and at last where.
func (c *caseT) text(rule string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failures) == 0 {
		return ""
	}
	return fmt.Sprintf("broken rule: %s\n%s", cmp.Or(c.broken, rule), strings.Join(c.failures, "\n"))
}

// outOfHand matches the text of a failure that tells of a panic or a hang.
var outOfHand = regexp.MustCompile(`(?m)^the (case|hook \S+) (panics|hangs): `)

// Testify's texts are a table of these parts, the place first and the message last.
var testifyPart = regexp.MustCompile(`(?m)^\t(Error Trace|Error|Test|Messages):\s*\t`)

// plain turns a text of testify's into one that begins with the sentence about what
// was checked, says in short what was wanted and what came, and ends with the place.
// Any other text stays as it is.
func plain(text string) string {
	found := testifyPart.FindAllStringSubmatchIndex(text, -1)
	if found == nil {
		return strings.TrimSuffix(text, "\n")
	}
	parts := map[string]string{}
	for i, m := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		var lines []string
		for line := range strings.Lines(text[m[1]:end]) {
			// Testify aligns the lines that follow under the first one.
			lines = append(lines, strings.TrimRight(continued.ReplaceAllString(line, ""), "\n"))
		}
		parts[text[m[2]:m[3]]] = strings.Trim(strings.Join(lines, "\n"), "\n")
	}
	said, diff, _ := strings.Cut(parts["Error"], "\n\nDiff:\n")
	said = strings.Replace(said, "Received unexpected error:\n", "got error: ", 1)
	said = equal.ReplaceAllString(said, "\n  want: $1\n  got:  $2")
	if message := parts["Messages"]; message != "" {
		said = message + ": " + strings.TrimPrefix(said, "Not equal:")
		said = strings.Replace(said, ": \n", ":\n", 1)
	}
	if len(said) > 300 && diff != "" { // too long to see it at once
		lines := strings.SplitAfter(diff, "\n")
		said += "\n  difference:\n" + strings.TrimSuffix(strings.Join(lines[min(3, len(lines)):min(len(lines), shownDiff)], ""), "\n")
	}
	return said + placed + place(strings.Split(parts["Error Trace"], "\n"))
}

// machinery matches the lines that lead to every case.
var machinery = regexp.MustCompile(`^(runner|caset|failures|waitgroup|asm_\w+)\.(go|s):`)

var (
	continued = regexp.MustCompile(`^\t {4,}\t`)
	equal     = regexp.MustCompile(`(?s)\s*\nexpected: (.*?)\nactual  : (.*)$`)
)

// shownDiff is how many lines of a difference are shown, three of which say nothing.
const shownDiff = 25

// placed is before the place of a failure.
const placed = "\n  at "

// place is the line of the case in a trace, then those of its helpers.
func place(trace []string) string {
	var at []string
	for _, line := range trace {
		line = filepath.Base(strings.TrimSpace(line))
		if machinery.MatchString(line) {
			break
		}
		at = append(at, line)
	}
	slices.Reverse(at)
	return strings.Join(at[:min(len(at), 3)], ", then ")
}

// here is the place that called Errorf.
func here() string {
	pcs := make([]uintptr, 8)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var trace []string
	for {
		frame, more := frames.Next()
		trace = append(trace, fmt.Sprintf("%s:%d", frame.File, frame.Line))
		if !more {
			return place(trace)
		}
	}
}

// stacks returns the stacks of all goroutines, those of the case first.
func stacks(name string) string {
	buf := make([]byte, 1<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	own := owner.Head(name)
	rank := func(stack string) int {
		head, _, _ := strings.Cut(stack, "\n")
		switch {
		case strings.Contains(head, own) && strings.Contains(stack, "(*caseT).guard("):
			return 0
		case strings.Contains(head, own):
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return strings.Join(all, "\n\n")
}

package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a Finding is.
type Severity uint8

// The severities, the worst last.
const (
	// Info: how it is, such as what the mode promises.
	Info Severity = iota + 1
	// Advice: it works; it would be quicker or safer otherwise.
	Advice
	// Warning: a promise may not hold, or not always.
	Warning
	// Fault: it doesn't work, or a promise is broken for sure.
	Fault
)

// String returns the severity's name.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Advice:
		return "advice"
	case Warning:
		return "warning"
	case Fault:
		return "fault"
	default:
		return "Severity(?)"
	}
}

// Finding is one thing that a Table's Verify found out about a database.
type Finding struct {
	Severity Severity
	// Code names the kind of finding, such as "due-index-missing"; it doesn't change.
	Code string
	// Column is the column concerned, if it is one.
	Column string
	// Reason says what is so, and what follows from it.
	Reason string
	// Mend is the statement that would mend it, or what to do; empty where there is
	// nothing to do. It is for people to read and run: Verify changes nothing.
	Mend string
}

// String is the finding on one line, and the remedy on a second.
func (f Finding) String() string {
	column := ""
	if f.Column != "" {
		column = " " + f.Column + ":"
	}
	text := fmt.Sprintf("%-7s %s:%s %s", f.Severity, f.Code, column, f.Reason)
	if f.Mend != "" {
		text += "\n        mend: " + f.Mend
	}
	return text
}

// Findings is what Verify returns: the worst first, in a definite order, and the
// promises of the table's mode at the end.
type Findings []Finding

// Worst returns the highest severity, 0 for no findings.
func (fs Findings) Worst() Severity {
	var worst Severity
	for _, f := range fs {
		worst = max(worst, f.Severity)
	}
	return worst
}

// String shows the findings line by line.
func (fs Findings) String() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Sort puts the worst first; within a severity the order stays.
func (fs Findings) Sort() {
	slices.SortStableFunc(fs, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
}

// Add appends a finding.
func (fs *Findings) Add(severity Severity, code, column, reason, mend string) {
	*fs = append(*fs, Finding{severity, code, column, reason, mend})
}

package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
)

// number writes v with three digits, and commas between thousands: 52,300, 4.21.
func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64); err == nil {
		v = rounded
	}
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100:
		return thousands(int64(math.Round(v)))
	case a < 0.005:
		return strconv.FormatFloat(v, 'g', 1, 64)
	default:
		digits := max(0, 2-int(math.Floor(math.Log10(a))))
		return strconv.FormatFloat(v, 'f', min(digits, 2), 64)
	}
}

// count writes a number of things.
func count(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return thousands(int64(math.Round(v)))
}

func thousands(v int64) string {
	s := strconv.FormatInt(v, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return sign + strings.Join(append([]string{s}, parts...), ",")
}

// spread writes a sample as its median and, where there were several rounds, its
// least and greatest value.
func spread(s figures.Sample) string {
	switch len(s) {
	case 0:
		return "–"
	case 1:
		return number(s[0])
	}
	return fmt.Sprintf("%s (%s..%s)", number(s.Median()), number(s.Min()), number(s.Max()))
}

// duration writes milliseconds.
func duration(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return "–"
	case math.Abs(ms) >= 1000:
		return number(ms/1000) + " s"
	}
	return number(ms) + " ms"
}

func durations(s figures.Sample) string {
	switch len(s) {
	case 0:
		return "–"
	case 1:
		return duration(s[0])
	}
	return fmt.Sprintf("%s (%s..%s)", duration(s.Median()), duration(s.Min()), duration(s.Max()))
}

// times writes how many times b a is, by medians.
func times(a, b figures.Sample) string {
	if len(a) == 0 || len(b) == 0 || b.Median() == 0 {
		return "–"
	}
	return number(a.Median()/b.Median()) + " ×"
}

// pending writes 10000 as "10,000", and what is no number as it is.
func pending(kase string) string {
	n, err := strconv.ParseInt(kase, 10, 64)
	if err != nil {
		return kase
	}
	return thousands(n)
}

// escapeCell keeps text from being read as Markdown in a table's cell.
var escapeCell = strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`).Replace

// table writes a Markdown table; the first column is text, the others are numbers.
func table(out *strings.Builder, head []string, rows [][]string) {
	writeTable(out, head, "---:|", rows)
}

// textTable is a table with text in all columns.
func textTable(out *strings.Builder, head []string, rows [][]string) {
	writeTable(out, head, "---|", rows)
}

func writeTable(out *strings.Builder, head []string, column string, rows [][]string) {
	fmt.Fprintf(out, "\n| %s |\n|---|%s\n", strings.Join(head, " | "), strings.Repeat(column, len(head)-1))
	for _, cells := range rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
}

package tabletest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Shape reduces a statement to its grammar: quoted names become "id", strings
// (whatever their prefix), numbers and placeholders "val", all else stays. Two
// statements of one shape differ in names and values only, so that comparing the
// shape under odd names and values with that under plain ones shows that none of
// them broke out. quote is the database's quote of names; backslash tells whether
// a plain string knows escapes (MySQL's default). It fails for what no statement
// here has: a comment, a semicolon, something unterminated.
func Shape(sql string, quote byte, backslash bool) (string, error) {
	var out []string
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		case c == quote:
			n, err := quoted(sql[i:], quote, false)
			if err != nil {
				return "", err
			}
			out, i = append(out, "id"), i+n
		case c == '\'':
			escapes := backslash
			if last := len(out) - 1; last >= 0 && strings.HasSuffix(sql[:i], out[last]) { // a prefix: E'…', x'…', _utf8mb4'…'
				switch strings.ToLower(out[last]) {
				case "e":
					escapes = true
					out = out[:last]
				case "x", "_utf8mb4", "_binary", "timestamp":
					out = out[:last]
				}
			}
			n, err := quoted(sql[i:], '\'', escapes)
			if err != nil {
				return "", err
			}
			out, i = append(out, "val"), i+n
		case c >= '0' && c <= '9' || (c == '$' || c == '?') && i+1 < len(sql) && sql[i+1] >= '0' && sql[i+1] <= '9':
			for i++; i < len(sql) && (sql[i] >= '0' && sql[i] <= '9' || sql[i] == '.'); i++ {
			}
			out = append(out, "val")
		case word(c):
			start := i
			for i++; i < len(sql) && (word(sql[i]) || sql[i] >= '0' && sql[i] <= '9'); i++ {
			}
			out = append(out, sql[start:i])
		case strings.HasPrefix(sql[i:], "--"), strings.HasPrefix(sql[i:], "/*") && !strings.HasPrefix(sql[i:], "/*+"), c == '#', c == ';', c >= utf8.RuneSelf, c < ' ':
			return "", fmt.Errorf("%q at byte %d of %q", sql[i:min(len(sql), i+2)], i, sql)
		default:
			out, i = append(out, string(c)), i+1
		}
	}
	return strings.Join(out, " "), nil
}

func word(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// quoted returns the length of the quoted text that s begins with.
func quoted(s string, quote byte, backslash bool) (int, error) {
	for i := 1; i < len(s); i++ {
		switch {
		case backslash && s[i] == '\\':
			i++
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1, nil
		case s[i] == 0:
			return 0, fmt.Errorf("NUL in %q", s)
		}
	}
	return 0, fmt.Errorf("unterminated: %q", s)
}

package mysqlclaim

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readLiteral is a reader of its own of what the encoder writes: it takes one
// literal off the front of s, as any MySQL or MariaDB would under any sql_mode, and
// returns its bytes. It refuses all that two servers could read in two ways: a
// backslash, a doubled quote, a byte that isn't printable ASCII.
func readLiteral(s string) (value []byte, rest string, err error) {
	introducer, after, found := strings.Cut(s, "'")
	if !found {
		return nil, "", fmt.Errorf("%q opens no quote", s)
	}
	body, rest, found := strings.Cut(after, "'")
	switch {
	case !found:
		return nil, "", fmt.Errorf("%q closes no quote", s)
	case strings.HasPrefix(rest, "'"):
		return nil, "", fmt.Errorf("%q goes on after its quote", s)
	}
	for _, c := range []byte(body) {
		if c < 0x20 || c > 0x7e || c == '\\' || c == '"' && introducer == "" {
			return nil, "", fmt.Errorf("%q has byte %#x between its quotes", s, c)
		}
	}
	switch introducer {
	case "_binary", "_utf8mb4":
		return []byte(body), rest, nil
	case "x", "_utf8mb4 x":
		value, err = hex.DecodeString(body) // an odd number of digits is an error
		return value, rest, err
	}
	return nil, "", fmt.Errorf("%q begins with %q", s, introducer)
}

// FuzzLiterals: whatever bytes a value has, what is written for it is one literal of
// these very bytes, and ends where the encoder thinks that it does.
func FuzzLiterals(f *testing.F) {
	for _, v := range []string{
		"", "a", "it's", `\`, `\'`, `a\`, "''", `"`, "`", "\x00", "\xbf\x27", "\xbf\x5c", "\x81\x5c", "\x95\x5c\x27", "\xe8\x27", "\xc0\xa7", "/*", "*/", "--", "#", ";",
		"x'00'", "_binary'", "日本😀", "\xff\xfe", "\x1a", "~", "\x7f", "?", "%", "_", "'; DROP TABLE dueclaim_tasks; --", "\u02bc", "\uff07",
	} {
		f.Add(v, int64(len(v)))
	}
	f.Add("min", int64(-1)<<63)
	f.Fuzz(func(t *testing.T, v string, n int64) {
		for name, write := range map[string]func(*text){
			"val":  func(t *text) { t.val(v) },
			"hex":  func(t *text) { t.hex([]byte(v)) },
			"utf8": func(x *text) { s := &statement{text: *x}; s.utf8(v); *x = s.text },
		} {
			stmt := new(text).sql("SELECT ")
			before := len(stmt.b)
			write(stmt)
			require.LessOrEqual(t, len(stmt.b)-before, literalBytes(len(v))+len("_utf8mb4 "), "%s", name)
			stmt.sql(", ").int(n).sql(", ")
			write(stmt)
			rest, found := strings.CutPrefix(stmt.String(), "SELECT ")
			require.True(t, found)
			for i := range 2 {
				got, after, err := readLiteral(rest)
				require.NoError(t, err, "%s", name)
				require.Equal(t, v, string(got), "%s", name)
				rest = after
				if i == 0 {
					number, after, found := strings.Cut(strings.TrimPrefix(rest, ", "), ", ")
					require.True(t, found)
					m, err := strconv.ParseInt(number, 10, 64)
					require.NoError(t, err)
					require.Equal(t, n, m)
					rest = after
				}
			}
			require.Empty(t, rest, "%s", name)
		}
	})
}

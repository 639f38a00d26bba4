package mysqlclaim

import (
	"encoding/hex"
	"strconv"
)

// text builds a statement with its values written into it. A statement without
// arguments is one round trip under every DSN (with arguments the driver's
// default is three: prepare, execute, close), has no limit of 65,535
// placeholders, and its values have the type that they are written in, also in
// a derived table. It is safe by construction: a value is a decimal integer, or
// quoted text of harmless ASCII characters, or hex. So neither sql_mode nor the
// connection's character set can change what it means.
type text struct {
	b []byte
	// direct: it is to fail at once where a row is locked; see Store.directly.
	direct bool
}

func (t *text) String() string { return string(t.b) }

// sql appends statement text: constants of this package and quoted names.
func (t *text) sql(parts ...string) *text {
	for _, p := range parts {
		t.b = append(t.b, p...)
	}
	return t
}

// int appends an integer.
func (t *text) int(n int64) *text {
	t.b = strconv.AppendInt(t.b, n, 10)
	return t
}

// val appends a byte string as a binary literal. An empty one goes as hex, as MariaDB
// has a mode in which empty quotes are NULL (EMPTY_STRING_IS_NULL). Long hex has an
// introducer too: MariaDB gives a column of a derived table 16 bits for the length of
// a hex literal without one, and cuts longer ones without a word.
func (t *text) val(v string) *text {
	if v == "" || !harmless(v) {
		if len(v) > 1<<10 {
			t.b = append(t.b, "_binary "...)
		}
		t.b = append(t.b, "x'"...)
		t.b = hex.AppendEncode(t.b, []byte(v))
	} else {
		t.b = append(t.b, "_binary'"...)
		t.b = append(t.b, v...)
	}
	t.b = append(t.b, '\'')
	return t
}

// literalBytes bounds what val appends for n bytes.
func literalBytes(n int) int { return 2*n + len("_binary x''") }

// harmless tells whether v may stand between quotes as it is: printable ASCII
// but the quote and the backslash.
func harmless(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			return false
		}
	}
	return true
}

// hex appends bytes as a binary literal.
func (t *text) hex(v []byte) *text {
	t.b = append(t.b, "x'"...)
	t.b = hex.AppendEncode(t.b, v)
	t.b = append(t.b, '\'')
	return t
}

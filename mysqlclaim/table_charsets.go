package mysqlclaim

import (
	"strings"
	"unicode/utf8"
)

// What a text column can hold has to be known beforehand: MariaDB refuses a
// statement in which a conversion loses something, and so one id, which no row of
// the table can have, would hold up a whole batch.

// holds tells whether a character set has a character. known is false for sets
// that aren't known here; the server then has to say.
func holds(charset string, r rune) (has, known bool) {
	switch charset {
	case "utf8mb4", "utf16", "utf16le", "utf32":
		return true, true
	case "utf8mb3", "utf8", "ucs2":
		return r <= 0xFFFF, true
	case "ascii":
		return r < utf8.RuneSelf, true
	case "latin1": // which is Windows-1252
		return r < 0x80 || r >= 0xA0 && r <= 0xFF || strings.ContainsRune("€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ", r), true
	default:
		return r < utf8.RuneSelf, false
	}
}

// representable tells whether a string may be one of the column's.
func representable(charset, s string) bool {
	for _, r := range s {
		if has, known := holds(charset, r); known && !has {
			return false
		}
	}
	return true
}

// reduced is s with question marks for what the character set hasn't, or may not
// have.
func reduced(charset, s string) string {
	return strings.Map(func(r rune) rune {
		if has, _ := holds(charset, r); !has {
			return '?'
		}
		return r
	}, s)
}

package claim

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/dueclaim/dueclaim/core"
)

// IDKind is the type of a table's id column. Ids are compared with what the row
// holds byte by byte, whatever the column's collation.
type IDKind uint8

// The kinds of ids.
const (
	// TextID: a character type, also a binary string of text.
	TextID IDKind = iota
	// IntegerID: an integer type of up to 64 bits, signed; the id is its decimal form.
	IntegerID
	// UUIDID: a uuid type, or text of the form 01234567-89ab-cdef-0123-456789abcdef
	// in lower case.
	UUIDID
	// BinaryUUIDID: a uuid as 16 bytes (BINARY(16) or BLOB), in the order of its
	// digits; not on Postgres. The id is the form of UUIDID.
	BinaryUUIDID
)

// String returns the kind's name.
func (k IDKind) String() string {
	switch k {
	case TextID:
		return "text"
	case IntegerID:
		return "integer"
	case UUIDID:
		return "uuid"
	case BinaryUUIDID:
		return "binary uuid"
	default:
		return "IDKind(?)"
	}
}

// Check returns nil or an error (core.ErrInvalid) that says why id can't be that
// of a row: it breaks the rules of ids, or it isn't the canonical form, the only
// one under which the index and the store know the row.
func (k IDKind) Check(id core.ID) error {
	if err := id.Check(); err != nil {
		return err
	}
	switch k {
	case IntegerID:
		n, err := strconv.ParseInt(string(id), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: id %q; want an integer of 64 bits in decimal form", core.ErrInvalid, string(id))
		}
		if canonical := strconv.FormatInt(n, 10); canonical != string(id) {
			return fmt.Errorf("%w: id %q is not in canonical form; want %q", core.ErrInvalid, string(id), canonical)
		}
	case UUIDID, BinaryUUIDID:
		if b, err := ParseUUID(string(id)); err != nil {
			return err
		} else if canonical := FormatUUID(b); canonical != string(id) {
			return fmt.Errorf("%w: id %q is not in canonical form; want %q", core.ErrInvalid, string(id), canonical)
		}
	}
	return nil
}

// ParseUUID reads a uuid of the form 01234567-89ab-cdef-0123-456789abcdef in
// either case. The error is core.ErrInvalid.
func ParseUUID(s string) (b [16]byte, err error) {
	bad := fmt.Errorf("%w: id %q; want a uuid such as 01234567-89ab-cdef-0123-456789abcdef", core.ErrInvalid, s)
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return b, bad
	}
	digits := strings.ReplaceAll(s, "-", "")
	if n, err := hex.Decode(b[:], []byte(digits)); err != nil || n != 16 || len(digits) != 32 {
		return b, bad
	}
	return b, nil
}

// FormatUUID returns the canonical form of a uuid.
func FormatUUID(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

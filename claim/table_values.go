package claim

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dueclaim/dueclaim/core"
)

// Value is a fixed value of a column: text (also of an ENUM), an integer or a
// boolean. The zero Value is none.
type Value struct {
	kind ValueKind
	text string
	n    int64
}

// ValueKind says what a Value is.
type ValueKind uint8

// The kinds of values; 0 is that of the zero Value.
const (
	TextValue ValueKind = iota + 1
	IntValue
	BoolValue
)

// MaxValueBytes bounds a text value.
const MaxValueBytes = 255

// Text is a text value: 1 to 255 bytes of valid UTF-8 without control
// characters.
func Text(s string) Value { return Value{kind: TextValue, text: s} }

// Int is an integer value.
func Int(n int64) Value { return Value{kind: IntValue, n: n} }

// Bool is a boolean value; on MySQL and SQLite the integer 1 or 0.
func Bool(b bool) Value {
	v := Value{kind: BoolValue}
	if b {
		v.n = 1
	}
	return v
}

// IsZero tells whether v is no value.
func (v Value) IsZero() bool { return v.kind == 0 }

// Kind returns what v is, 0 for the zero Value.
func (v Value) Kind() ValueKind { return v.kind }

// Text returns a text value's text.
func (v Value) Text() string { return v.text }

// Int returns an integer, and 1 or 0 for a boolean.
func (v Value) Int() int64 { return v.n }

// String shows v for messages.
func (v Value) String() string {
	switch v.kind {
	case TextValue:
		return strconv.Quote(v.text)
	case IntValue:
		return strconv.FormatInt(v.n, 10)
	case BoolValue:
		return strconv.FormatBool(v.n == 1)
	default:
		return "no value"
	}
}

// Column returns the value as its column's text form: what the databases give for
// it when it is cast to text (a Postgres boolean apart).
func (v Value) Column() string {
	if v.kind == TextValue {
		return v.text
	}
	return strconv.FormatInt(v.n, 10)
}

func (v Value) check(role string) error {
	switch {
	case v.kind != TextValue:
		return nil
	case v.text == "" || len(v.text) > MaxValueBytes:
		return fmt.Errorf("%w: %s has %d bytes, want 1 to %d", core.ErrInvalid, role, len(v.text), MaxValueBytes)
	case !utf8.ValidString(v.text), strings.ContainsFunc(v.text, unicode.IsControl):
		return fmt.Errorf("%w: %s is %q; want valid UTF-8 without control characters", core.ErrInvalid, role, v.text)
	}
	return nil
}

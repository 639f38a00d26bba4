package core

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The scheduler and the producer check what they pass to adapters. The methods
// that users call on an adapter directly, within their own transactions, check
// with these.

// Check returns nil or an error (ErrInvalid) when a Call can't be stored.
func (c Call) Check() error {
	if !asciiWord(c.ID) {
		return fmt.Errorf("%w: Call.ID is %q; want 1 to %d bytes of printable ASCII without spaces, as Producer.NewCall makes", ErrInvalid, c.ID, MaxCallBytes)
	}
	if err := CheckDue(c.Now); err != nil {
		return fmt.Errorf("%w (as Call.Now, which is to be the store's present time)", err)
	}
	return nil
}

// Check returns nil or an error (ErrInvalid) when s ends no grant: its id or
// holder can't be one, its outcome is none, or the due time that the outcome needs
// is out of range.
func (s Settlement) Check() error {
	if err := s.Grant.ID.Check(); err != nil {
		return err
	}
	if !asciiWord(s.Grant.Holder) {
		return fmt.Errorf("%w: Grant.Holder is %q; want the one that was granted", ErrInvalid, s.Grant.Holder)
	}
	switch s.Outcome {
	case Done, DeadLetter:
		return nil
	case Retry, Released:
		return CheckDue(s.Due)
	default:
		return fmt.Errorf("%w: outcome is %d, want Done, Retry, DeadLetter or Released", ErrInvalid, s.Outcome)
	}
}

func asciiWord(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= MaxCallBytes
}

// StorableText makes an error's text fit Settlement.Err: at most 4 KiB of valid
// UTF-8 without NUL. What doesn't fit is replaced or cut.
func StorableText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if len(s) <= MaxErrorBytes {
		return s
	}
	const mark = " …"
	cut := MaxErrorBytes - len(mark)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

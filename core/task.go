package core

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a task's fields, in bytes. Check enforces them.
const (
	MaxIDBytes      = 255
	MaxKindBytes    = 100
	MaxPayloadBytes = 1 << 20
	MaxMetaBytes    = 16 << 10
	// MaxErrorBytes bounds the error text stored with a failed attempt; core
	// cuts longer ones.
	MaxErrorBytes = 4 << 10
	// MaxCallBytes bounds Call.ID and Lease.Holder.
	MaxCallBytes = 64
)

// ID names a task within its queue: 1 to 255 bytes of valid UTF-8 without
// control characters and without leading or trailing white space. IDs are
// compared as bytes: case, accents and Unicode composition matter.
type ID string

// Check returns nil or an error (ErrInvalid) that says which rule id breaks.
func (id ID) Check() error {
	s := string(id)
	switch {
	case s == "":
		return fmt.Errorf("%w: id is empty; want 1 to %d bytes", ErrInvalid, MaxIDBytes)
	case len(s) > MaxIDBytes:
		return fmt.Errorf("%w: id has %d bytes, want at most %d (it starts %q)", ErrInvalid, len(s), MaxIDBytes, s[:32])
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: id %q is not valid UTF-8", ErrInvalid, s)
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return fmt.Errorf("%w: id %q has a control character at byte %d", ErrInvalid, s, i)
	}
	if strings.TrimSpace(s) != s {
		return fmt.Errorf("%w: id %q begins or ends with white space", ErrInvalid, s)
	}
	return nil
}

// Task is a unit of delayed work. The zero values of Kind, Payload, Meta and
// MaxAttempts are valid.
type Task struct {
	ID ID
	// Kind selects the handler; at most 100 bytes of valid UTF-8 without
	// control characters.
	Kind string
	// Payload is the handler's, opaque to dueclaim; at most 1 MiB.
	Payload []byte
	// Meta holds core's own fields, opaque to adapters; at most 16 KiB.
	Meta []byte
	// Due is the instant from which the task may run, never before. Core hands
	// adapters UTC times of whole milliseconds, rounded up; from 1970 through
	// 9999. In a [Claimed] it is the due time that was asked for by the
	// producer or by the last retry: a take-over or a release doesn't change it.
	Due time.Time
	// MaxAttempts is how many failures the task may have before it is dead; 0
	// stands for the scheduler's default.
	MaxAttempts int
}

// Check returns nil or an error (ErrInvalid) that names the first field that
// breaks a rule, what it was and what is expected.
func (t Task) Check() error {
	if err := t.ID.Check(); err != nil {
		return err
	}
	if err := checkKind(t.Kind); err != nil {
		return err
	}
	if n := len(t.Payload); n > MaxPayloadBytes {
		return fmt.Errorf("%w: payload has %d bytes, want at most %d; keep large data elsewhere and store its address", ErrInvalid, n, MaxPayloadBytes)
	}
	if n := len(t.Meta); n > MaxMetaBytes {
		return fmt.Errorf("%w: meta has %d bytes, want at most %d", ErrInvalid, n, MaxMetaBytes)
	}
	if t.MaxAttempts < 0 || t.MaxAttempts > 1<<30 {
		return fmt.Errorf("%w: MaxAttempts is %d, want 0 (the default) to %d", ErrInvalid, t.MaxAttempts, 1<<30)
	}
	return CheckDue(t.Due)
}

func checkKind(kind string) error {
	switch {
	case len(kind) > MaxKindBytes:
		return fmt.Errorf("%w: kind has %d bytes, want at most %d", ErrInvalid, len(kind), MaxKindBytes)
	case !utf8.ValidString(kind):
		return fmt.Errorf("%w: kind %q is not valid UTF-8", ErrInvalid, kind)
	case strings.ContainsFunc(kind, unicode.IsControl):
		return fmt.Errorf("%w: kind %q has a control character", ErrInvalid, kind)
	}
	return nil
}

// Entry is one line of a time index: the task ID is worth a look from Due on.
type Entry struct {
	ID  ID
	Due time.Time
}

// Move changes an entry's or a pending task's due time, provided that it still
// is From. A zero From, where a method allows it, stands for any.
type Move struct {
	ID       ID
	From, To time.Time
}

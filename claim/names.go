package claim

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dueclaim/dueclaim/core"
)

// Defaults of the SQL adapters' options.
const (
	DefaultTable = "dueclaim_tasks"
	DefaultQueue = "default"
	// MaxQueueBytes bounds a queue's name.
	MaxQueueBytes = 100
)

// One identifier: what MySQL, Postgres and SQLite all take when quoted, no
// longer than the shortest of their limits (Postgres: 63 bytes).
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,62}$`)

// CheckTable returns nil or an error (core.ErrInvalid) when name is neither an
// identifier nor a schema-qualified one ("schema.table"). Identifiers are
// letters, digits, _ and $, don't start with a digit and have at most 63 bytes.
// room is the number of bytes that the adapter appends for names derived from
// it (of indexes, of the view).
func CheckTable(name string, room int) error {
	parts := strings.Split(name, ".")
	ok := len(parts) <= 2
	for _, p := range parts {
		ok = ok && identifier.MatchString(p) && len(p)+room <= 63
	}
	if !ok {
		return fmt.Errorf("%w: table name %q; want name or schema.name of letters, digits, _ and $, not starting with a digit, at most %d bytes each",
			core.ErrInvalid, name, 63-room)
	}
	return nil
}

// QuoteTable quotes each part of a name that CheckTable accepted between
// quote characters: ` for MySQL, " for Postgres and SQLite.
func QuoteTable(name string, quote byte) string {
	q := string(quote)
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = q + strings.ReplaceAll(p, q, q+q) + q
	}
	return strings.Join(parts, ".")
}

// CheckQueue returns nil or an error (core.ErrInvalid) when queue is not 1 to
// 100 bytes of valid UTF-8 without control characters or spaces at its ends.
func CheckQueue(queue string) error {
	switch {
	case queue == "" || len(queue) > MaxQueueBytes:
		return fmt.Errorf("%w: queue name has %d bytes, want 1 to %d", core.ErrInvalid, len(queue), MaxQueueBytes)
	case !utf8.ValidString(queue), strings.ContainsFunc(queue, unicode.IsControl), strings.TrimSpace(queue) != queue:
		return fmt.Errorf("%w: queue name %q; want valid UTF-8 without control characters and without spaces at its ends", core.ErrInvalid, queue)
	}
	return nil
}

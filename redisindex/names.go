package redisindex

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dueclaim/dueclaim/core"
)

// Limits and default of a queue's name, the same as in the claim stores.
const (
	defaultQueue  = "default"
	maxQueueBytes = 100
)

// names are the three keys and the channel of a queue.
type names struct{ due, junk, life, wake string }

func newNames(queue string) (names, error) {
	queue = cmp.Or(queue, defaultQueue)
	switch {
	case len(queue) > maxQueueBytes:
		return names{}, fmt.Errorf("%w: queue name has %d bytes, want 1 to %d", core.ErrInvalid, len(queue), maxQueueBytes)
	case !utf8.ValidString(queue), strings.ContainsFunc(queue, unicode.IsControl), strings.TrimSpace(queue) != queue:
		return names{}, fmt.Errorf("%w: queue name %q; want valid UTF-8 without control characters and without spaces at its ends", core.ErrInvalid, queue)
	}
	prefix := "dueclaim:{" + escape(queue) + "}:"
	return names{due: prefix + "due", junk: prefix + "junk", life: prefix + "life", wake: prefix + "wake"}, nil
}

// escape writes as %XX what would end the hash tag (braces), what is special in
// patterns of SCAN, ACLs and shells, and the percent sign itself, so that no two
// names come out the same.
func escape(queue string) string {
	const special = "%{}*?[]\\\"'` "
	var b strings.Builder
	for _, c := range []byte(queue) {
		if strings.IndexByte(special, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

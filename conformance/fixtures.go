package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// base is the made-up present of most cases. Its milliseconds are odd on
// purpose: a backend that keeps seconds shows at once.
var base = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// at returns the instant ms milliseconds after base.
func at(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }

// longAgo and farAhead lie on either side of any clock that a backend may read.
var (
	longAgo  = time.Date(1980, 5, 6, 7, 8, 9, 123_000_000, time.UTC)
	farAhead = time.Date(2300, 5, 6, 7, 8, 9, 123_000_000, time.UTC)
)

// instants are due times at the ends of what the contract allows, and around
// the turns at which a conversion goes wrong.
var instants = []time.Time{
	time.UnixMilli(0).UTC(),
	time.UnixMilli(1).UTC(),
	time.Date(1999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
	time.Date(2028, 2, 29, 12, 0, 0, 1_000_000, time.UTC),
	time.Date(2031, 3, 30, 1, 30, 0, 500_000_000, time.UTC), // no such local time in much of Europe
	time.Date(2031, 10, 26, 0, 30, 0, 0, time.UTC),          // a local time that comes twice
	time.Date(2038, 1, 19, 3, 14, 8, 7_000_000, time.UTC),   // beyond 31 bits of seconds
	time.Date(2200, 1, 1, 0, 0, 0, 123_000_000, time.UTC),
	time.Date(9999, 12, 31, 23, 59, 59, 998_000_000, time.UTC),
	time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
}

// awkwardIDs are legal ids which collations, patterns, quoting, number parsing
// or key syntax confuse with one another or misread.
var awkwardIDs = []core.ID{
	"a", "A", "\u00e1", "a\u0301", "\u00c1", "aa", "AA", "ä", "ae", "æ", "å", "Å", "\u212b",
	"straße", "strasse", "STRASSE", "ß", "ss", "ẞ", "i", "I", "ı", "İ", "ǆ", "ǅ", "ﬁ", "fi", "ñ", "n\u0303",
	"😀", "😁", "😀😀", "👩‍👩‍👧", "👩👩👧", "あ", "ア", "ｱ", "か", "が", "①", "1", "01", "1.0", "1e0", "+1", "-1", "0", "0x1", "١",
	"a b", "a  b", "a\u00a0b", "a\u200bb", "ab", "\ufeffb", "b", "b\u200b", "\ufffd",
	"100%", "100_", "100x", "a'b", "a''b", "a\"b", "a`b", "a\\b", "a\\\\b", `a\'b`, `\`, `%`, `_`, `'`, `"`,
	"{a}", "{b}", "{}", "{", "}", "[a]", "*", "a*", "?", "$1", ":x", "@x", "#", "--", "/*", ";", "a;b", "a,b", "a:b", "a/b", "(a)", "..", "null", "NULL", "true", "default",
	core.ID(strings.Repeat("x", core.MaxIDBytes)),
	core.ID(strings.Repeat("x", core.MaxIDBytes-1)),
	core.ID(strings.Repeat("x", core.MaxIDBytes-1) + "y"),
	core.ID(strings.Repeat("x", core.MaxIDBytes-1) + "X"),
	core.ID(strings.Repeat("😀", core.MaxIDBytes/4) + "abc"),
	core.ID(strings.Repeat("é", core.MaxIDBytes/2) + "a"),
}

// manyIDs returns n ids, id i with the given prefix, that sort as numbers do.
func manyIDs(prefix string, n int) []core.ID {
	ids := make([]core.ID, n)
	for i := range ids {
		ids[i] = core.ID(fmt.Sprintf("%s-%05d", prefix, i))
	}
	return ids
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "zero"
	}
	if zone := t.Location(); zone != time.UTC { // also where it is another name for it, as Local may be
		return t.Format(time.RFC3339Nano) + " in the zone " + zone.String()
	}
	return t.Format(time.RFC3339Nano)
}

// show renders entries one a line, so that a difference is readable and a time
// that isn't UTC or not exact is one.
func show(entries []core.Entry) []string {
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = fmt.Sprintf("%q due %s", e.ID, stamp(e.Due))
	}
	return lines
}

// wantEntries fails unless got is want, in order and to the nanosecond.
func (c *caseT) wantEntries(want, got []core.Entry, about string, args ...any) {
	w, g := show(want), show(got)
	if slices.Equal(w, g) {
		return
	}
	same := 0
	for same < min(len(w), len(g)) && w[same] == g[same] {
		same++
	}
	first := ""
	if same > 0 {
		first = fmt.Sprintf("; after %d that are right", same)
	}
	c.Errorf("%s: got %d entries, want %d%s:\n  want: %s\n  got:  %s", fmt.Sprintf(about, args...), len(g), len(w), first, some(w[same:]), some(g[same:]))
}

// some shows the first few of a list.
func some(list []string) string {
	switch shown := 5; {
	case len(list) == 0:
		return "none"
	case len(list) > shown+1:
		return fmt.Sprintf("%s, and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
	default:
		return strings.Join(list, ", ")
	}
}

// wantTime fails unless got is want in UTC.
func (c *caseT) wantTime(want, got time.Time, about string, args ...any) {
	assert.Equal(c, stamp(want), stamp(got), append([]any{about}, args...)...)
}

// refusal is one item that a batch is to fail for.
type refusal struct {
	index int
	id    core.ID
	err   error
}

// wantRefusals fails unless err is a *core.BatchError of exactly these items.
func (c *caseT) wantRefusals(err error, want []refusal, about string) {
	require.Error(c, err, about)
	var batch *core.BatchError
	if !errors.As(err, &batch) {
		c.Errorf("%s: got error %v (%T), want a *core.BatchError of %d items", about, err, err, len(want))
		c.FailNow()
	}
	if len(batch.Items) != len(want) {
		c.Errorf("%s: got %d failed items, want %d: %v", about, len(batch.Items), len(want), err)
		c.FailNow()
	}
	for i, item := range batch.Items {
		if item.Index != want[i].index || item.ID != want[i].id || !errors.Is(item.Err, want[i].err) {
			c.Errorf("%s: failed item %d: got index %d, id %q, error %v; want index %d, id %q, error %v",
				about, i, item.Index, item.ID, item.Err, want[i].index, want[i].id, want[i].err)
		}
	}
}

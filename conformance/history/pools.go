package history

import (
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"pgregory.net/rapid"
)

// lookalikes are legal ids that a careless backend takes for one another.
var lookalikes = [][2]core.ID{
	{"a", "A"},
	{"\u00e9", "e\u0301"}, // composed and decomposed
	{"ö", "o"},
	{"straße", "strasse"},
	{"ı", "i"},
	{"1", "01"},
	{"x y", "x\u00a0y"},
	{"b\u200bb", "bb"},
	{"100%", "100_"},
	{"d'e", "d''e"},
	{`f\g`, `f\\g`},
	{"{h}", "h"},
	{"ﬁ", "fi"},
	{"😀", "😁"},
	{core.ID(strings.Repeat("l", core.MaxIDBytes-1) + "l"), core.ID(strings.Repeat("l", core.MaxIDBytes-1) + "L")},
	{core.ID(strings.Repeat("m", core.MaxIDBytes-1)), core.ID(strings.Repeat("m", core.MaxIDBytes))},
}

// bases are the presents that histories play in: on both sides of any clock that
// a backend may read, and at the turn of a second.
var bases = []time.Time{
	time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC),
	time.Date(1999, 12, 31, 23, 59, 59, 998_000_000, time.UTC),
	time.UnixMilli(1).UTC(),
	time.Date(2200, 2, 28, 12, 0, 0, 0, time.UTC),
}

// The first and the last due time there are.
var (
	epoch     = time.UnixMilli(0).UTC()
	endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
)

// pools are what a history draws from: little of everything, so that calls
// concern the same ids and instants again and again.
type pools struct {
	base  time.Time
	ids   []core.ID
	times []time.Time // instants to compare with, in order
	dues  []time.Time
}

func drawPools(t *rapid.T) pools {
	p := pools{base: pick(t, "base", bases)}
	for _, pair := range rapid.SliceOfNDistinct(rapid.SampledFrom(lookalikes), 3, 3, rapid.ID).Draw(t, "ids") {
		p.ids = append(p.ids, pair[0], pair[1])
	}
	for _, ms := range []int{0, 1, 2, 1_000, 60_000} {
		p.times = append(p.times, p.base.Add(time.Duration(ms)*time.Millisecond))
	}
	p.dues = append(slices.Clone(p.times), epoch, endOfTime)
	return p
}

func (p pools) now(t *rapid.T) time.Time { return pick(t, "now", p.times) }
func (p pools) due(t *rapid.T) time.Time { return pick(t, "due", p.dues) }

// after returns an instant that is later than now.
func (p pools) after(t *rapid.T, now time.Time) time.Time {
	later := slices.DeleteFunc(slices.Clone(p.dues), func(x time.Time) bool { return !x.After(now) })
	return pick(t, "until", append(later, now.Add(time.Millisecond)))
}

// some returns up to six of list, in any order, no two with the same key.
func some[T any, K comparable](t *rapid.T, what string, list []T, key func(T) K) []T {
	if len(list) == 0 {
		return nil
	}
	distinct := map[K]bool{}
	for _, x := range list {
		distinct[key(x)] = true
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(list), 0, min(6, len(distinct)), key).Draw(t, what)
}

func pick[T any](t *rapid.T, what string, list []T) T { return rapid.SampledFrom(list).Draw(t, what) }

// chance is true once in n times, and no more when the history is made smaller.
func chance(t *rapid.T, what string, n int) bool { return rapid.IntRange(0, n-1).Draw(t, what) == n-1 }

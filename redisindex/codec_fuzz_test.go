package redisindex

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzScores: a due time written as a score and read again is the same instant,
// whichever way Redis spells the number; a score that somebody else wrote is never
// read as earlier than it is.
func FuzzScores(f *testing.F) {
	for _, s := range []string{
		"0", "-0", "1900000000000", "253402300799999", "253402300799999.5", "1.9e12", "1.9000000000005e+12", "0.25", "1e-300", "inf", "-inf", "nan",
		"9007199254740993", "+5", " 5", "5 ", "0x1p40", "1_000", "", "5.0", "1900000000000.0001",
	} {
		f.Add(s, int64(len(s)))
	}
	f.Add("1", int64(253402300799999))
	f.Fuzz(func(t *testing.T, s string, ms int64) {
		if ms >= 0 && ms <= 253402300799999 {
			at := time.UnixMilli(ms).UTC()
			written := score(at)
			asFloat := float64(ms) // what a sorted set holds
			for _, reply := range []string{
				written, strconv.FormatFloat(asFloat, 'g', 17, 64), strconv.FormatFloat(asFloat, 'f', -1, 64), strconv.FormatFloat(asFloat, 'e', -1, 64),
			} {
				back, err := parseDue(reply)
				require.NoError(t, err, "%s", reply)
				require.True(t, at.Equal(back), "%s is read as %s, want %s", reply, back, at)
			}
		}
		back, err := parseDue(s)
		if err != nil {
			return
		}
		stands, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err, "%q is no number, but read as %s", s, back)
		// The scripts answer with nothing but scores from 1970 through 9999.
		if stands >= 0 && stands <= 253402300799999 {
			require.GreaterOrEqual(t, float64(back.UnixMilli()), stands, "%q is read as earlier than it is", s)
			require.Less(t, float64(back.UnixMilli()-1), stands, "%q is read as later than rounded up", s)
		}
		require.False(t, math.IsNaN(parseScore(s)))
	})
}

// FuzzQueueNames: no two queues share a key, and no name gets out of its place in
// one: the hash tag is what stands between the braces, patterns and spaces are gone.
func FuzzQueueNames(f *testing.F) {
	for _, q := range []string{"", "default", "a b", "a%20b", "{a}", "}a{", "a*", `"`, "订单", "a:due", "dueclaim:{a}:due", "%7B", "%"} {
		f.Add(q, "default")
		f.Add(q, q)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := newNames(a)
		if err != nil {
			return
		}
		for _, name := range []string{x.due, x.junk, x.wake} {
			require.Equal(t, 1, strings.Count(name, "{"))
			require.Equal(t, 1, strings.Count(name, "}"))
			require.False(t, strings.ContainsAny(name, "*?[]\\\"'` \n\x00"), "%q", name)
			require.Equal(t, hashTag(x.due), hashTag(name))
		}
		y, err := newNames(b)
		if err != nil || a == b || a == "" && b == defaultQueue || b == "" && a == defaultQueue {
			return
		}
		require.NotEqual(t, x.due, y.due, "%q and %q", a, b)
	})
}

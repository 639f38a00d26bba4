package claim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// FuzzIDKinds: an id that a kind lets pass has one spelling only: read and written
// again it is the same to the byte, so that the index and the row can't know it
// under two names. And it has nothing but what its kind is made of.
func FuzzIDKinds(f *testing.F) {
	for _, id := range []string{
		"0", "-0", "+1", "007", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e3", "0x7", "1_000", "٣", "7 or 1=1",
		"01234567-89ab-cdef-0123-456789abcdef", "01234567-89AB-CDEF-0123-456789ABCDEF", "00000000-0000-0000-0000-000000000000",
		"0123456--89ab-cdef-0123-456789abcdef", "a", "größe", "it's", "", " ", "\xff",
	} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id := core.ID(s)
		for _, kind := range []claim.IDKind{claim.TextID, claim.IntegerID, claim.UUIDID, claim.BinaryUUIDID} {
			err := kind.Check(id)
			if err != nil {
				require.ErrorIs(t, err, core.ErrInvalid)
				continue
			}
			require.NoError(t, id.Check(), "%s: no kind lets pass what is no id", kind)
			switch kind {
			case claim.IntegerID: // goes into MySQL's statements as it is
				require.Empty(t, strings.Trim(strings.TrimPrefix(s, "-"), "0123456789"), "%q", s)
				require.Regexp(t, `^(0|-?[1-9][0-9]{0,18})$`, s)
			case claim.UUIDID, claim.BinaryUUIDID:
				b, err := claim.ParseUUID(s)
				require.NoError(t, err)
				require.Equal(t, s, claim.FormatUUID(b))
				require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, s)
			}
		}
	})
}

// FuzzNames: a name that is let pass, quoted, is one identifier for each part, with
// whatever an adapter appends; an independent reader finds its end where it is.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"dueclaim_tasks", "shop.tasks", "a$b", "_", "a`b", `a"b`, "a.b.c", ".", "a.", "t;--", "t\n", "t\x00", "täsk", strings.Repeat("t", 63), strings.Repeat("t", 64),
		"a]b", "a'b", "a\\", "1t", "select.from", "t\u2028", "t/*",
	} {
		f.Add(name, 9)
	}
	f.Fuzz(func(t *testing.T, name string, room int) {
		room = room & 31
		err := claim.CheckTable(name, room)
		for _, quote := range []byte{'`', '"'} {
			quoted := claim.QuoteTable(name, quote)
			parts, ok := identifiers(quoted, quote)
			require.True(t, ok, "%q: quoting alone never lets a name out: %s", name, quoted)
			require.Equal(t, strings.Split(name, "."), parts, "%q", name)
			if err != nil {
				continue
			}
			require.LessOrEqual(t, len(parts), 2)
			for _, p := range parts {
				require.LessOrEqual(t, len(p)+room, 63, "no server cuts it short")
				require.Equal(t, string(quote)+p+string(quote), claim.QuoteTable(p, quote), "nothing in it needs an escape")
			}
		}
		if err != nil {
			require.ErrorIs(t, err, core.ErrInvalid)
		}
		column := full()
		column.ID.Name = name
		if column.Check() == nil {
			require.NotContains(t, name, ".", "a column has one part")
			require.NoError(t, claim.CheckTable(name, 0))
		}
	})
}

// identifiers reads quoted names separated by dots, by the rule of the standard: a
// doubled quote stands for one.
func identifiers(s string, quote byte) (parts []string, ok bool) {
	for {
		if s == "" || s[0] != quote {
			return nil, false
		}
		var part []byte
		i := 1
		for ; i < len(s); i++ {
			if s[i] == quote {
				if i+1 == len(s) || s[i+1] != quote {
					break
				}
				i++
			}
			part = append(part, s[i])
		}
		if i >= len(s) {
			return nil, false
		}
		parts, s = append(parts, string(part)), s[i+1:]
		if s == "" {
			return parts, true
		}
		if s[0] != '.' {
			return nil, false
		}
		s = s[1:]
	}
}

// FuzzTimes: what is written for an instant is never before it, what is compared
// with never after it, whatever the column's kind, precision and zone; and what a
// column can hold exactly reads back as it was.
func FuzzTimes(f *testing.F) {
	f.Add(int64(1_900_000_000_000_000), byte(0), byte(0), byte(0))
	f.Add(int64(-1), byte(2), byte(6), byte(1))
	f.Add(int64(1_919_203_199_999_999), byte(2), byte(3), byte(1)) // 2030-10-26, a day before the clocks go back
	f.Add(int64(1_919_293_200_000_000), byte(2), byte(0), byte(1)) // 2030-10-27 01:00 UTC, the moment
	f.Add(int64(1_919_291_400_000_000), byte(2), byte(3), byte(1)) // in the hour that comes twice
	f.Add(int64(1_919_295_000_000_001), byte(2), byte(6), byte(2))
	f.Add(int64(253402300799999999), byte(3), byte(6), byte(0))
	zones := []*time.Location{nil}
	for _, name := range []string{"Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata"} {
		zone, err := time.LoadLocation(name)
		require.NoError(f, err)
		zones = append(zones, zone)
	}
	f.Fuzz(func(t *testing.T, micros int64, kind, digits, zone byte) {
		if micros < 0 || micros > 253402300799999999 {
			return // due times are from 1970 through 9999
		}
		c := claim.TimeColumn{Name: "t", Kind: claim.TimeKind(kind % 4)}
		if c.Kind >= claim.DateTime {
			c.Digits = int(digits % 7)
		}
		if c.Kind == claim.DateTime {
			c.Zone = zones[int(zone)%len(zones)]
		}
		at := time.UnixMicro(micros).UTC()
		written := c.AtLeast(at)
		require.False(t, c.Read(written).Before(at), "%s %v: %s is written as one of before: %s", c.Kind, c.Zone, at, c.Read(written))
		if asked := c.Round(at, true); c.Zone == nil {
			require.True(t, c.Read(written).Equal(asked), "%s is read as %s", asked, c.Read(written))
		}
		most := c.AtMost(at)
		require.False(t, c.Read(most).After(at), "%s %v: what isn't after %s includes %s", c.Kind, c.Zone, at, c.Read(most))
		require.LessOrEqual(t, most, written)
		below := c.Below(at) - max(1, c.Step().Microseconds()) // the greatest that the column can hold
		if c.Integer() {
			below = c.Below(at) - 1
		}
		require.True(t, c.Read(below).Before(at), "%s %v: the leases that ended before %s include %s", c.Kind, c.Zone, at, c.Read(below))
		if !c.Integer() {
			text := c.Text(written)
			layout := "2006-01-02 15:04:05"
			back, err := time.Parse(layout, text) // a fraction is read though the layout has none
			if written <= 253402300799999999 {
				require.NoError(t, err)
				require.Equal(t, written, back.UnixMicro(), "%s", text)
				require.Empty(t, strings.Trim(text, "0123456789-: ."), "nothing but digits and what stands between them")
			}
		}
	})
}

package claim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// recipe is the table that the idea came with.
func recipe() claim.Table {
	return claim.Table{
		Name: "orders",
		ID:   claim.IDColumn{Name: "order_id"},
		State: claim.StateColumn{
			Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("processing"), Done: claim.Text("cancelled"),
		},
		Due:      claim.DueTime{Base: claim.TimeColumn{Name: "created_at", Kind: claim.DateTime, Zone: time.UTC}, After: 30 * time.Minute},
		Updated:  claim.TimeColumn{Name: "updated_at", Kind: claim.DateTime, Zone: time.UTC},
		LeaseFor: 30 * time.Second,
	}
}

func full() claim.Table {
	t := recipe()
	t.LeaseFor = 0
	t.Token, t.Holder, t.Lease = "token", "holder", claim.TimeColumn{Name: "lease_until"}
	return t
}

func step() claim.Table {
	t := recipe()
	t.State.Processing, t.LeaseFor = claim.Value{}, 0
	return t
}

func TestColumnsMakeTheMode(t *testing.T) {
	for mode, table := range map[claim.Mode]claim.Table{claim.Full: full(), claim.StatusUpdated: recipe(), claim.Transition: step()} {
		assert.Equal(t, mode, table.Mode())
		require.NoError(t, table.Check())
		assert.NotEmpty(t, table.Promises())
		for _, f := range table.Promises() {
			assert.Contains(t, f.Reason, mode.String()+": ", "each promise names its mode")
			assert.LessOrEqual(t, f.Severity, claim.Advice)
		}
	}
	assert.True(t, full().Dated())
	assert.False(t, recipe().Dated())
	assert.False(t, step().Dated())
	dated := recipe()
	dated.Due = claim.DueTime{Column: claim.TimeColumn{Name: "due_at"}}
	assert.True(t, dated.Dated(), "a retry writes the due time")
}

func TestWhatIsWrongWithATableIsSaid(t *testing.T) {
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		table  func() claim.Table
		change func(*claim.Table)
		want   string
	}{
		"no name":                  {recipe, func(t *claim.Table) { t.Name = "" }, `table name ""`},
		"a quote in the name":      {recipe, func(t *claim.Table) { t.Name = "or`ders" }, "table name \"or`ders\""},
		"three parts":              {recipe, func(t *claim.Table) { t.Name = "a.b.c" }, `table name "a.b.c"`},
		"no id":                    {recipe, func(t *claim.Table) { t.ID.Name = "" }, "ID has no column name"},
		"NUL in a column":          {recipe, func(t *claim.Table) { t.ID.Name = "a\x00b" }, `column name "a\x00b" (ID)`},
		"a column of 64 letters":   {recipe, func(t *claim.Table) { t.State.Name = long }, "at most 63 bytes"},
		"a column of other script": {recipe, func(t *claim.Table) { t.Payload = "größe" }, `column name "größe" (Payload)`},
		"kind of id":               {recipe, func(t *claim.Table) { t.ID.Kind = 9 }, "ID.Kind is 9"},
		"no pending":               {recipe, func(t *claim.Table) { t.State.Pending = claim.Value{} }, "State.Pending is missing"},
		"no done":                  {recipe, func(t *claim.Table) { t.State.Done = claim.Value{} }, "State.Done is missing"},
		"done is pending":          {recipe, func(t *claim.Table) { t.State.Done = claim.Text("pending") }, `State.Pending and State.Done are both "pending"`},
		"text and integer":         {recipe, func(t *claim.Table) { t.State.Done = claim.Int(3) }, "want values of one kind"},
		"NUL in a value":           {recipe, func(t *claim.Table) { t.State.Done = claim.Text("a\x00") }, "State.Done is"},
		"bytes in a value":         {recipe, func(t *claim.Table) { t.State.Done = claim.Text("\xff") }, "want valid UTF-8"},
		"an endless value":         {recipe, func(t *claim.Table) { t.State.Done = claim.Text(strings.Repeat("x", 256)) }, "State.Done has 256 bytes"},
		"two due times":            {recipe, func(t *claim.Table) { t.Due.Column.Name = "due_at" }, "Due.Column and Due.Base are both set"},
		"after nothing":            {recipe, func(t *claim.Table) { t.Due.Base = claim.TimeColumn{} }, "Due.After needs Due.Base"},
		"after in microseconds":    {recipe, func(t *claim.Table) { t.Due.After = time.Microsecond }, "Due.After is 1µs"},
		"before":                   {recipe, func(t *claim.Table) { t.Due.After = -time.Second }, "Due.After is -1s"},
		"no updated":               {recipe, func(t *claim.Table) { t.Updated = claim.TimeColumn{} }, "Updated is missing"},
		"no lease":                 {recipe, func(t *claim.Table) { t.LeaseFor = 0 }, "LeaseFor is 0s"},
		"an odd lease":             {recipe, func(t *claim.Table) { t.LeaseFor = 1500 * time.Millisecond }, "LeaseFor is 1.5s"},
		"token alone":              {full, func(t *claim.Table) { t.Holder = "" }, "Holder is missing: Token, Holder and Lease go together"},
		"no lease column":          {full, func(t *claim.Table) { t.Lease = claim.TimeColumn{} }, "Lease is missing"},
		"two leases":               {full, func(t *claim.Table) { t.LeaseFor = time.Minute }, "LeaseFor is set"},
		"a token for a step":       {step, func(t *claim.Table) { t.Token = "token" }, "Token is set: without State.Processing"},
		"attempts of a step":       {step, func(t *claim.Table) { t.Attempts = "n" }, "Attempts is set"},
		"crashes alone":            {full, func(t *claim.Table) { t.Crashes = "n" }, "Crashes is set: it needs Attempts"},
		"a column in two parts":    {full, func(t *claim.Table) { t.Holder = "TOKEN" }, "column TOKEN plays two parts, Token and Holder"},
		"due by its fence":         {recipe, func(t *claim.Table) { t.Due.Base.Name = t.Updated.Name }, "column updated_at plays two parts, Due.Base and Updated; want another column, or mode Transition"},
		"a condition on the state": {full, func(t *claim.Table) { t.Where = []claim.Condition{{Column: "status", Equals: claim.Text("x")}} }, "column status plays two parts"},
		"a condition on nothing":   {full, func(t *claim.Table) { t.Where = []claim.Condition{{Column: "shop"}} }, "Where[0] has Equals no value and IsNull false; want one of them"},
		"a condition twice": {full, func(t *claim.Table) {
			t.Where = []claim.Condition{{Column: "shop", Equals: claim.Int(1), IsNull: true}}
		}, "Where[0] has Equals 1 and IsNull true; want one of them"},
		"no due time":          {full, func(t *claim.Table) { t.Due = claim.DueTime{} }, "Due is missing: map Due.Column"},
		"two kinds":            {full, func(t *claim.Table) { t.Kind, t.FixedKind = "kind", "k" }, "Kind and FixedKind are both set"},
		"a fixed kind":         {full, func(t *claim.Table) { t.FixedKind = strings.Repeat("k", 101) }, "kind has 101 bytes"},
		"digits":               {full, func(t *claim.Table) { t.Updated.Digits = 7 }, "Digits is 7"},
		"digits of an integer": {full, func(t *claim.Table) { t.Lease.Digits = 3 }, "Digits is 3"},
		"a wall clock's zone":  {recipe, func(t *claim.Table) { t.Due.Base.Zone = nil }, "column created_at (Due.Base): Zone is missing: a DateTime is what a wall clock shows, and only your statements say whose. Write Zone: time.UTC if they write UTC"},
		"another's":            {recipe, func(t *claim.Table) { t.Updated.Zone = nil }, "column updated_at (Updated): Zone is missing"},
		"a zone of an instant": {full, func(t *claim.Table) {
			t.Lease = claim.TimeColumn{Name: "lease_until", Kind: claim.Timestamp, Zone: time.UTC}
		}, "Zone is for DateTime only"},
		"a zone of an integer":  {full, func(t *claim.Table) { t.Lease.Zone = time.UTC }, "Zone is for DateTime only"},
		"a kind of time":        {full, func(t *claim.Table) { t.Lease.Kind = 9 }, "the kind is 9"},
		"a time without a name": {full, func(t *claim.Table) { t.Lease = claim.TimeColumn{Digits: 1} }, "Lease has no column name"},
	} {
		t.Run(name, func(t *testing.T) {
			table := c.table()
			c.change(&table)
			err := table.Check()
			require.ErrorIs(t, err, core.ErrInvalid)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestReservedWordsAreNames(t *testing.T) {
	table := full()
	table.Name, table.ID.Name, table.State.Name, table.Token, table.Holder = "select.table", "order", "user", "where", "key"
	require.NoError(t, table.Check())
}

func TestOnlyTheCanonicalFormOfAnIDIsOne(t *testing.T) {
	const uuid core.ID = "01234567-89ab-cdef-0123-456789abcdef"
	for kind, ids := range map[claim.IDKind]struct{ good, bad []core.ID }{
		claim.TextID:    {[]core.ID{"a", "007", "x y", "größe"}, []core.ID{"", " a", "a ", "a\x00", "\xff"}},
		claim.IntegerID: {[]core.ID{"0", "7", "-7", "9223372036854775807", "-9223372036854775808"}, []core.ID{"", "007", "+7", "-0", "7.0", "1e3", "9223372036854775808", "7 or 1=1", "٣", "0x7", "1_000"}},
		claim.UUIDID:    {[]core.ID{uuid}, []core.ID{"", core.ID(strings.ToUpper(string(uuid))), "{" + uuid + "}", "0123456789abcdef0123456789abcdef", uuid[:35], uuid + "0", "0123456g-89ab-cdef-0123-456789abcdef", "01234567--9ab-cdef-0123-456789abcdef"}},
	} {
		for _, id := range ids.good {
			require.NoError(t, kind.Check(id), "%s %q", kind, id)
		}
		for _, id := range ids.bad {
			require.ErrorIs(t, kind.Check(id), core.ErrInvalid, "%s %q", kind, id)
		}
	}
	require.NoError(t, claim.BinaryUUIDID.Check(uuid))
	assert.ErrorContains(t, claim.IntegerID.Check("007"), `want "7"`)
	assert.ErrorContains(t, claim.UUIDID.Check(core.ID(strings.ToUpper(string(uuid)))), `want "`+string(uuid)+`"`)
}

func FuzzUUID(f *testing.F) {
	f.Add("01234567-89ab-cdef-0123-456789abcdef")
	f.Add("01234567-89AB-CDEF-0123-456789abcdef")
	f.Add("--------------------------------------")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := claim.ParseUUID(s)
		if err == nil {
			assert.True(t, strings.EqualFold(s, claim.FormatUUID(b)), "%q is read as %q", s, claim.FormatUUID(b))
		}
	})
}

func TestFindingsComeWithTheWorstFirst(t *testing.T) {
	var fs claim.Findings
	assert.Zero(t, fs.Worst())
	fs.Add(claim.Info, "a", "", "so it is", "")
	fs.Add(claim.Fault, "b", "c", "broken", "ALTER TABLE t")
	fs.Add(claim.Fault, "d", "", "broken too", "")
	fs.Sort()
	assert.Equal(t, claim.Fault, fs.Worst())
	assert.Equal(t, "fault   b: c: broken\n        mend: ALTER TABLE t\nfault   d: broken too\ninfo    a: so it is", fs.String())
}

func TestAFixedKindIsCheckedAsATasksKind(t *testing.T) {
	table := recipe()
	table.FixedKind = "cancel unpaid"
	require.NoError(t, table.Check())
	table.FixedKind = "not\xffUTF-8"
	require.ErrorIs(t, table.Check(), core.ErrInvalid)
}

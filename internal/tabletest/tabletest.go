// Package tabletest holds what the tests of all SQL adapters need to run the
// conformance suite on a user's own table: the tables, one for each mode, what
// stands in their rows, and what each mode doesn't promise.
package tabletest

import (
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
)

// After is how long after its base column a row is due.
const After = 30 * time.Minute

// LeaseFor is the length of the leases in mode StatusUpdated: that of the suite's.
const LeaseFor = 30 * time.Second

// Config is a mode on a table of its own.
type Config struct {
	Name     string
	Provides conformance.ClaimerProvides
	Weaker   map[string]string
	times    claim.TimeColumn
	fill     func(t *claim.Table, times func(name string) claim.TimeColumn)
}

// The states of a row.
const (
	Pending    = "pending"
	Processing = "processing"
	Done       = "completed"
	Dead       = "given up"
)

// Table is the mapping, on a table of that name. A shop's rows that aren't deleted are a
// queue: the table's fixed conditions.
func (c Config) Table(name, shop string) claim.Table {
	t := claim.Table{
		Name:  name,
		ID:    claim.IDColumn{Name: "order_id"},
		State: claim.StateColumn{Name: "status", Pending: claim.Text(Pending), Done: claim.Text(Done), Dead: claim.Text(Dead)},
		Where: []claim.Condition{{Column: "shop", Equals: claim.Text(shop)}, {Column: "deleted_at", IsNull: true}},
		Kind:  "kind", Payload: "payload",
	}
	c.fill(&t, func(name string) claim.TimeColumn {
		times := c.times
		times.Name = name
		return times
	})
	return t
}

// Backend is the value of the attribute "dueclaim.backend" for this mode on a
// database.
func (c Config) Backend(database string) string {
	return "table:" + strings.TrimPrefix(database, "store:") + ", " + c.Name
}

// Time is the type of the table's time columns: created_at, due_at, lease_until and
// updated_at.
func (c Config) Time() claim.TimeColumn { return c.times }

// Columns are the columns that a user's INSERT fills, in the order of Row's values.
// Others that the table must have: token, attempts, crashes (integers), holder and
// last_error (texts), lease_until and updated_at (times), deleted_at (text); all may be
// Null.
func Columns() []string {
	return []string{"order_id", "shop", "status", "created_at", "due_at", "kind", "payload"}
}

// Row is a pending row for a task: strings, integers, times as instant makes them,
// and bytes.
func (c Config) Row(t core.Task, shop string, instant func(column claim.TimeColumn, value int64) any) []any {
	at := func(t time.Time) any { return instant(c.times, c.times.AtLeast(t)) }
	return []any{string(t.ID), shop, Pending, at(t.Due.Add(-After)), at(t.Due), t.Kind, t.Payload}
}

// Configs are the tables of a database whose own type for times is native, with
// three digits of a fraction.
func Configs(native claim.TimeColumn) []Config {
	base := func(t *claim.Table, times func(string) claim.TimeColumn) {
		t.Due = claim.DueTime{Base: times("created_at"), After: After}
	}
	full := func(t *claim.Table, times func(string) claim.TimeColumn) {
		t.State.Processing = claim.Text(Processing)
		t.Token, t.Holder, t.Lease = "token", "holder", times("lease_until")
		t.Attempts, t.Crashes, t.LastError, t.Updated = "attempts", "crashes", "last_error", times("updated_at")
	}
	return []Config{
		{
			Name: "Full", times: claim.TimeColumn{Kind: claim.UnixMilli},
			Provides: conformance.ClaimerProvides{KeepsFinished: true, OwnRows: true},
			Weaker:   weakerFull(),
			fill: func(t *claim.Table, times func(string) claim.TimeColumn) {
				full(t, times)
				t.Due = claim.DueTime{Column: times("due_at")}
			},
		},
		{
			Name: "Full, due time only read", times: native,
			Provides: conformance.ClaimerProvides{KeepsFinished: true, OwnRows: true},
			Weaker:   weakerBase(),
			fill: func(t *claim.Table, times func(string) claim.TimeColumn) {
				full(t, times)
				base(t, times)
			},
		},
		{
			Name: "StatusUpdated", times: native,
			Provides: conformance.ClaimerProvides{KeepsFinished: true, OwnRows: true, Undated: true},
			Weaker:   weakerUpdated(),
			fill: func(t *claim.Table, times func(string) claim.TimeColumn) {
				t.State.Processing = claim.Text(Processing)
				t.Updated, t.LeaseFor = times("updated_at"), LeaseFor
				t.Attempts, t.Crashes, t.LastError = "attempts", "crashes", "last_error"
				base(t, times)
			},
		},
		{
			Name: "Transition", times: native,
			Provides: conformance.ClaimerProvides{KeepsFinished: true, OwnRows: true, Undated: true, Uncounted: true},
			Weaker:   weakerTransition(),
			fill:     base,
		},
	}
}

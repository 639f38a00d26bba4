package tabletest

import (
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// Written says which columns a worker writes in one mode, of a table that has state,
// token, holder, lease and failure: rights on them are enough.
type Written struct {
	Name    string
	Change  func(*claim.Table) // makes a definition in mode Full one of this mode
	Columns string             // as they stand in a GRANT
}

// WrittenColumns are those of each mode.
func WrittenColumns() []Written {
	return []Written{
		{"full", func(*claim.Table) {}, "state, token, holder, lease, failure"},
		{"updated", func(d *claim.Table) {
			d.Token, d.Holder, d.Lease = "", "", claim.TimeColumn{}
			d.Updated, d.LeaseFor = claim.TimeColumn{Name: "lease"}, 30*time.Second
		}, "state, lease, failure"},
		{"transition", func(d *claim.Table) {
			d.Token, d.Holder, d.Lease, d.State.Processing, d.LastError = "", "", claim.TimeColumn{}, claim.Value{}, ""
		}, "state"},
	}
}

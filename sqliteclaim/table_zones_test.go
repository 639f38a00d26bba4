package sqliteclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// At 01:00 UTC Berlin's clocks go from 03:00 back to 02:00. A lease that was written
// just after it must not look over by what they showed just before, nor one whose
// end is after it.
func TestALeaseIsHeldWhileItsZonesClockIsSetBack(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	change := time.Date(2030, 10, 27, 1, 0, 0, 0, time.UTC)
	const length = 30 * time.Second
	column := func(name string) claim.TimeColumn {
		return claim.TimeColumn{Name: name, Kind: claim.DateTime, Zone: berlin(t)}
	}
	lease := func(holder string, now time.Time) core.Lease {
		return core.Lease{Holder: holder, Now: now, DueBy: now, Until: now.Add(length)}
	}
	for mode, fill := range map[claim.Mode]func(*claim.Table){
		claim.Full:          func(d *claim.Table) { d.Token, d.Holder, d.Lease = "token", "holder", column("lease") },
		claim.StatusUpdated: func(d *claim.Table) { d.Updated, d.LeaseFor = column("updated"), length },
	} {
		t.Run(mode.String(), func(t *testing.T) {
			path := file(t)
			db := usersDB(t, path)
			execute(t, db, "CREATE TABLE orders (id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, created INTEGER NOT NULL DEFAULT 0, token INTEGER, holder TEXT, lease DATETIME, updated DATETIME)")
			def := claim.Table{
				Name: "orders", ID: claim.IDColumn{Name: "id"},
				State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("in hand"), Done: claim.Text("done")},
				Due:   claim.DueTime{Base: claim.TimeColumn{Name: "created"}},
			}
			fill(&def)
			table, err := sqliteclaim.NewTable(db, def)
			require.NoError(t, err)
			ask := func(l core.Lease) core.Verdict {
				got, err := table.Claim(t.Context(), []core.ID{"a"}, l)
				require.NoError(t, err)
				return got[0].Verdict
			}
			for s := -40; s <= 40; s += 5 {
				execute(t, db, "DELETE FROM orders")
				execute(t, db, "INSERT INTO orders (id, state) VALUES ('a', 'new')")
				start := change.Add(time.Duration(s) * time.Second)
				require.Equal(t, core.Granted, ask(lease("a", start)), "%d s", s)
				for d := time.Duration(0); d <= length; d += 5 * time.Second {
					require.Equal(t, core.Held.String(), ask(lease("b", start.Add(d))).String(), "%s into a lease of %s that began %d s from the change", d, length, s)
					waiting, err := table.Waiting(t.Context(), start.Add(d), core.Entry{}, start.Add(time.Hour), 10)
					require.NoError(t, err)
					assert.Empty(t, waiting)
				}
				assert.Equal(t, core.Granted, ask(lease("c", start.Add(length+time.Hour+time.Second))), "late by an hour at most")
			}
			// A holder whose heartbeats go on through both hours holds the row, and settles it.
			execute(t, db, "DELETE FROM orders")
			execute(t, db, "INSERT INTO orders (id, state) VALUES ('a', 'new')")
			start := change.Add(-time.Hour - 10*time.Second)
			got, err := table.Claim(t.Context(), []core.ID{"a"}, lease("a", start))
			require.NoError(t, err)
			for at := start; at.Before(change.Add(70 * time.Minute)); at = at.Add(10 * time.Second) {
				require.NoError(t, table.Extend(t.Context(), []core.Grant{got[0].Grant}, at.Add(length)))
				require.Equal(t, core.Held.String(), ask(lease("b", at.Add(9*time.Second))).String(), "%s", at)
			}
			require.NoError(t, table.Settle(t.Context(), change, []core.Settlement{{Grant: got[0].Grant, Outcome: core.Done}}))
		})
	}
}

package mysqlclaim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// An order that a program in New York placed this second, by its own clock, must not
// look hours old: either the mapping has that clock, or Verify says that it hasn't.
func TestAnOrderOfThisSecondIsNotDue(t *testing.T) {
	york, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.make(t, recipeTable, "orders")
		for _, options := range []string{"loc=America%2FNew_York", "loc=America%2FNew_York&parseTime=true", "loc=America%2FNew_York&interpolateParams=true"} {
			db := open(t, f.dsn, options)
			f.exec(t, "DELETE FROM orders")
			_, err := db.ExecContext(t.Context(), "INSERT INTO orders (order_id, created_at) VALUES ('a', ?)", time.Now())
			require.NoError(t, err)
			for _, zone := range []*time.Location{york, time.UTC} {
				def := recipeDef("orders")
				def.Due.Base.Zone, def.Updated.Zone = zone, zone
				found := verify(t, db, def)
				got, faulty := find(found, "driver-zone", "created_at")
				assert.Equal(t, zone == time.UTC, faulty, "%s", found)
				if faulty {
					assert.Equal(t, fault, got.Severity)
					assert.Regexp(t, `an instant that is [45]h0m0s too early`, got.Reason)
					continue
				}
				table := newTable(t, db, def)
				claimed, err := table.Claim(t.Context(), []core.ID{"a"}, leaseOf("h", time.Now()))
				require.NoError(t, err)
				require.Equal(t, core.NotDue.String(), claimed[0].Verdict.String())
				assert.InDelta(t, 30, time.Until(claimed[0].At).Minutes(), 3)
			}
		}
	})
}

// A statement of the user's that sets time_zone leaves it so for the next who gets the
// connection. A grant holds over it.
func TestAGrantHoldsWhileTheSessionsZoneChanges(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.db.SetMaxOpenConns(1)
		f.make(t, `CREATE TABLE %s (id VARCHAR(50) COLLATE EXACT PRIMARY KEY, status VARCHAR(20) NOT NULL, created TIMESTAMP(3) NOT NULL, changed TIMESTAMP(3) NULL, KEY (status, created))`, "stamped")
		f.make(t, `CREATE TABLE %s (id VARCHAR(50) COLLATE EXACT PRIMARY KEY, status VARCHAR(20) NOT NULL, created DATETIME(3) NOT NULL, changed DATETIME(3) NULL, KEY (status, created))`, "shown")
		for name, c := range map[string]claim.TimeColumn{"stamped": {Kind: claim.Timestamp, Digits: 3}, "shown": {Kind: claim.DateTime, Digits: 3, Zone: time.UTC}} {
			created, changed := c, c
			created.Name, changed.Name = "created", "changed"
			table := newTable(t, f.db, claim.Table{
				Name: name, ID: claim.IDColumn{Name: "id"},
				State: claim.StateColumn{Name: "status", Pending: claim.Text("new"), Processing: claim.Text("busy"), Done: claim.Text("done")},
				Due:   claim.DueTime{Base: created}, Updated: changed, LeaseFor: 30 * time.Second,
			})
			zone := func(z string) { f.exec(t, "SET time_zone = '"+z+"'") }
			now := time.Now()
			zone("+00:00")
			f.exec(t, "INSERT INTO "+name+" (id, status, created) VALUES ('a', 'new', UTC_TIMESTAMP() - INTERVAL 1 MINUTE)")
			zone("+09:00")
			claimed, err := table.Claim(t.Context(), []core.ID{"a"}, leaseOf("a", now))
			require.NoError(t, err)
			require.Equal(t, core.Granted.String(), claimed[0].Verdict.String(), name)
			zone("-05:00")
			require.Equal(t, "Held", answers(t, table, leaseOf("b", now.Add(20*time.Second)), "a"), name)
			require.NoError(t, table.Extend(t.Context(), []core.Grant{claimed[0].Grant}, now.Add(50*time.Second)), name)
			zone("+05:30")
			require.Equal(t, "Held", answers(t, table, leaseOf("b", now.Add(45*time.Second)), "a"), name)
			waiting, err := table.Waiting(t.Context(), now.Add(45*time.Second), core.Entry{}, now.Add(time.Hour), 10)
			require.NoError(t, err)
			assert.Empty(t, waiting, name)
			zone("+00:00")
			require.NoError(t, table.Settle(t.Context(), now, []core.Settlement{{Grant: claimed[0].Grant, Outcome: core.Done}}), name)
		}
	})
}

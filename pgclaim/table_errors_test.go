package pgclaim

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestATableThatDoesntFitSaysVerify(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		s := d.open(t, url, Options{})
		table := s.onTable(t, orders("orders", claim.Full))
		for _, ddl := range []string{"SELECT", "CREATE TABLE orders (order_id text)"} {
			s.exec(t, ddl)
			for name, call := range map[string]func() error{
				"claim":  func() error { _, err := table.Claim(t.Context(), []core.ID{"a"}, lease("h", 0)); return err },
				"extend": func() error { return table.Extend(t.Context(), []core.Grant{{ID: "a", Token: 1, Holder: "h"}}, at(1)) },
				"settle": func() error {
					return table.Settle(t.Context(), at(1), []core.Settlement{{Grant: core.Grant{ID: "a", Token: 1, Holder: "h"}, Outcome: core.Done}})
				},
				"waiting": func() error {
					_, err := table.Waiting(t.Context(), at(1), core.Entry{}, at(1), 1)
					return err
				},
			} {
				err := call()
				require.ErrorContains(t, err, "pgclaim: "+name+": the table orders doesn't fit its definition (Verify says more): ")
				var pg *pgconn.PgError
				require.ErrorAs(t, err, &pg)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := table.Claim(ctx, []core.ID{"a"}, lease("h", 0))
		require.ErrorIs(t, err, context.Canceled)
		now, err := table.Now(t.Context())
		require.NoError(t, err, "the clock needs no table")
		assert.WithinDuration(t, time.Now(), now, time.Minute)

		d.session = map[string]string{"default_transaction_read_only": "on"}
		s.exec(t, "DROP TABLE orders")
		s.exec(t, "CREATE TYPE orders_status AS ENUM ('pending', 'processing', 'cancelled')")
		s.exec(t, "CREATE TABLE orders (order_id text, status orders_status, created_at timestamp)")
		for _, statement := range s.suggested(t, table) {
			assert.NotEmpty(t, statement)
		}
		_, err = d.open(t, url, Options{}).onTable(t, table.def).Claim(t.Context(), []core.ID{"a"}, lease("h", 0))
		require.ErrorContains(t, err, "read-only; connect to the primary")
	})
}

// infinity is how Postgres says never, and -infinity from the start.
func TestInfinityIsNeverDue(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		for _, times := range []claim.TimeColumn{withZone, withoutZone} {
			x := newShops(t, d, url, tabletest.Configs(times)[1], "text", "text")
			x.count.Store(int64(times.Kind) * 10)
			table := x.fresh(t)
			x.put(t, table, "shop", []core.Task{task("never", 0), task("ever", 0), task("now", 0)})
			x.first.exec(t, "UPDATE "+table.name+" SET created_at = 'infinity' WHERE order_id = 'never'")
			x.first.exec(t, "UPDATE "+table.name+" SET created_at = '-infinity' WHERE order_id = 'ever'")
			waiting, err := table.Waiting(t.Context(), at(5), core.Entry{}, at(5), 10)
			require.NoError(t, err)
			require.Len(t, waiting, 2)
			assert.Equal(t, []core.ID{"ever", "now"}, []core.ID{waiting[0].ID, waiting[1].ID})
			claimed, err := table.Claim(t.Context(), []core.ID{"never", "ever", "now"}, lease("h", 5))
			require.NoError(t, err)
			assert.Equal(t, []core.Verdict{core.Gone, core.Granted, core.Granted}, []core.Verdict{claimed[0].Verdict, claimed[1].Verdict, claimed[2].Verdict})
		}
	})
}

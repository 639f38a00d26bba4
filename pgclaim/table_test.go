package pgclaim

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// The recipe's table, as Postgres writes it.
const (
	ordersSQL = `CREATE TABLE {t} (
  order_id   varchar(50) PRIMARY KEY,
  status     {t}_status NOT NULL DEFAULT 'pending',
  created_at timestamp NOT NULL,
  updated_at timestamp DEFAULT NULL)`
	ordersEnumSQL = `CREATE TYPE {t}_status AS ENUM ('pending', 'processing', 'cancelled', 'completed')`
	ordersIndex   = `CREATE INDEX ON {t} (status, created_at, order_id)`
	// What leads from there to mode Full.
	fullSQL = `ALTER TABLE "{t}" ADD COLUMN "dueclaim_token" bigint NOT NULL DEFAULT 0, ` +
		`ADD COLUMN "dueclaim_holder" text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN "dueclaim_lease" bigint, ` +
		`ADD COLUMN "dueclaim_attempts" integer NOT NULL DEFAULT 0, ADD COLUMN "dueclaim_crashes" integer NOT NULL DEFAULT 0, ` +
		`ADD COLUMN "dueclaim_error" text`
)

// orders maps it in the mode for which it has the columns.
func orders(name string, mode claim.Mode) claim.Table {
	def := claim.Table{
		Name: name,
		ID:   claim.IDColumn{Name: "order_id"},
		State: claim.StateColumn{
			Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("processing"), Done: claim.Text("cancelled"),
		},
		Due: claim.DueTime{Base: claim.TimeColumn{Name: "created_at", Kind: claim.DateTime, Digits: 6, Zone: time.UTC}, After: 30 * time.Minute},
	}
	updated := claim.TimeColumn{Name: "updated_at", Kind: claim.DateTime, Digits: 6, Zone: time.UTC}
	switch mode {
	case claim.StatusUpdated:
		def.Updated, def.LeaseFor = updated, 30*time.Second
	case claim.Transition:
		def.Updated, def.State.Processing = updated, claim.Value{}
	case claim.Full:
		def = fullOf(def)
	}
	return def
}

// onTable makes a Table on the store's pool.
func (s *Store) onTable(t testing.TB, def claim.Table) *Table {
	t.Helper()
	var table *Table
	var err error
	if s.pool != nil {
		table, err = NewTable(s.pool, def)
	} else {
		table, err = NewSQLTable(s.db, def)
	}
	require.NoError(t, err)
	return table
}

func TestNewTableRefusesADefinitionThatCantBe(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	good := orders("orders", claim.Full)
	binary := good
	binary.ID.Kind = claim.BinaryUUIDID
	nameless := good
	nameless.State.Name = `status"; DROP TABLE orders; --`
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	require.NoError(t, err)
	defer pool.Close()
	for name, def := range map[string]claim.Table{"a binary uuid": binary, "a name with a quote": nameless, "nothing": {}} {
		_, err := NewTable(pool, def)
		require.ErrorIs(t, err, core.ErrInvalid, name)
		assert.ErrorContains(t, err, "pgclaim: new table: ", name)
	}
	_, err = NewTable(nil, good)
	require.ErrorIs(t, err, core.ErrInvalid)
	_, err = NewSQLTable(nil, good)
	require.ErrorIs(t, err, core.ErrInvalid)

	table, err := NewTable(pool, good)
	require.NoError(t, err, "it doesn't connect")
	_, err = table.Verify(t.Context())
	assert.ErrorContains(t, err, "pgclaim: verify: ")
}

package mysqlclaim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Two shops may number their orders alike. A statement that finds its row by the id
// would change that of the other shop too.
func TestAnIDThatIsNotUniqueByItselfIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.exec(t, "CREATE TABLE orders (shop INT NOT NULL, id VARCHAR(50) NOT NULL, status VARCHAR(20) NOT NULL, created_at BIGINT NOT NULL DEFAULT 0, updated_at DATETIME, PRIMARY KEY (shop, id))")
		f.exec(t, "INSERT INTO orders (shop, id, status) VALUES (1, 'a', 'new'), (2, 'a', 'paid')")
		table := newTable(t, f.db, claim.Table{
			Name: "orders", ID: claim.IDColumn{Name: "id"},
			State:   claim.StateColumn{Name: "status", Pending: claim.Text("new"), Processing: claim.Text("at work"), Done: claim.Text("cancelled")},
			Where:   []claim.Condition{{Column: "shop", Equals: claim.Int(1)}},
			Due:     claim.DueTime{Base: claim.TimeColumn{Name: "created_at"}},
			Updated: claim.TimeColumn{Name: "updated_at", Kind: claim.DateTime, Zone: time.UTC}, LeaseFor: 30 * time.Second,
		})
		_, err := table.Claim(t.Context(), []core.ID{"a"}, leaseOf("h", base))
		assert.ErrorContains(t, err, "no unique index has column id alone")
		var states string
		require.NoError(t, f.db.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(status ORDER BY shop) FROM orders").Scan(&states))
		assert.Equal(t, "new,paid", states)

		f.exec(t, "UPDATE orders SET id = 'b' WHERE shop = 2")
		f.exec(t, "ALTER TABLE orders ADD UNIQUE KEY (id)")
		got, err := table.Claim(t.Context(), []core.ID{"a", "b"}, leaseOf("h", base))
		require.NoError(t, err, "the refusal isn't remembered")
		assert.Equal(t, []core.Verdict{core.Granted, core.Gone}, []core.Verdict{got[0].Verdict, got[1].Verdict})
	})
}

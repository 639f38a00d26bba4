package mysqlclaim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
)

func suggest(t *testing.T, f fixture, def claim.Table) []string {
	t.Helper()
	statements, err := newTable(t, f.db, def).Suggest(t.Context())
	require.NoError(t, err)
	return statements
}

// mapped is def with the columns that Suggest names.
func mapped(def claim.Table) claim.Table {
	def.Token, def.Holder, def.Lease, def.LeaseFor = "dueclaim_token", "dueclaim_holder", claim.TimeColumn{Name: "dueclaim_lease"}, 0
	def.Attempts, def.Crashes, def.LastError = "dueclaim_attempts", "dueclaim_crashes", "dueclaim_error"
	return def
}

func TestSuggestLeadsToFullAndOldInsertsGoOnWorking(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.make(t, recipeTable, "orders", "'processing',", "'it''s','a\\\\b',")
		const insert = "INSERT INTO orders (order_id, created_at) VALUES "
		f.exec(t, insert+"('a', '2026-01-02 03:04:05'), ('b', '2026-01-02 03:04:05')")
		f.exec(t, "UPDATE orders SET status = 'it''s' WHERE order_id = 'b'")

		def := recipeDef("orders")
		def.State.Processing, def.LeaseFor = claim.Value{}, 0 // Transition
		statements := suggest(t, f, def)
		require.Len(t, statements, 2, "%q", statements)
		for _, s := range statements {
			f.exec(t, s)
		}
		assert.Empty(t, suggest(t, f, def), "names that it suggested are there")

		full := mapped(recipeDef("orders"))
		full.State.Dead = claim.Text("completed")
		assert.Empty(t, suggest(t, f, full))
		for _, code := range serious(verify(t, f.db, full)) {
			assert.Contains(t, []string{"id-collation order_id", "id-padded order_id"}, code, "what Suggest doesn't touch")
		}
		f.exec(t, insert+"('c', '2026-01-02 03:04:05')")
		var states string
		require.NoError(t, f.db.QueryRow("SELECT GROUP_CONCAT(status ORDER BY order_id) FROM orders").Scan(&states))
		assert.Equal(t, "pending,it's,pending", states)

		full.State.Dead = claim.Text("it's dead")
		full.Attempts = "tries"
		assert.Equal(t, []string{
			"ALTER TABLE `orders` MODIFY `status` " + enumOf(t, f) + ", ADD COLUMN `tries` INT NOT NULL DEFAULT 0",
		}, suggest(t, f, full), "mapped names count")
	})
}

func enumOf(t *testing.T, f fixture) string {
	charset, collation := "utf8mb4", "utf8mb4_0900_ai_ci"
	require.NoError(t, f.db.QueryRow("SELECT character_set_name, collation_name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'status'").Scan(&charset, &collation))
	return `enum('pending','it''s','a\\b','cancelled','completed','processing','it''s dead') CHARACTER SET ` + charset + " COLLATE " + collation + " NOT NULL DEFAULT 'pending'"
}

func TestSuggestNeedsTheTable(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		_, err := newTable(t, f.db, recipeDef("nothing")).Suggest(t.Context())
		assert.ErrorContains(t, err, "there is no table `nothing`")
	})
}

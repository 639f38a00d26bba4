package parts

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Table is what the three SQL adapters can do on a table of the user's own.
type Table interface {
	core.Claimer
	// Verify says what doesn't fit, and what is promised.
	Verify(ctx context.Context) (claim.Findings, error)
	// Suggest returns the statements that lead to mode Full.
	Suggest(ctx context.Context) ([]string, error)
	// SettleTx ends grants in a transaction of the caller's (modes Full and
	// StatusUpdated).
	SettleTx(ctx context.Context, tx *sql.Tx, now time.Time, settlements []core.Settlement) error
	// Transition makes the step and the caller's writes in one transaction (mode
	// Transition). Where somebody else made it, f isn't called.
	Transition(ctx context.Context, job *core.Job, f func(tx *sql.Tx) error) error
}

// OpenTable returns a claim store on a table of the user's own in the database
// that Parts.DB is. The table need not be there yet; Close closes what is opened.
func (p *Parts) OpenTable(ctx context.Context, def claim.Table) (Table, error) {
	return p.table(ctx, def)
}

// Database says what kind of database the store is in: "sqlite", "mysql" (also
// for MariaDB) or "postgres".
func (c Choice) Database() string {
	scheme, _, _ := strings.Cut(c.Store, ":")
	if scheme == "postgresql" {
		return "postgres"
	}
	return scheme
}

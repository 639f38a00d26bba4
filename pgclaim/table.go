package pgclaim

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// Table is a claim store on the user's own table, as a claim.Table describes it.
// It is safe for concurrent use. It never closes the pool that it was given.
type Table struct {
	def    claim.Table
	name   string // quoted
	engine *sqltable.Engine
	handle
}

// NewTable returns a Table on a pool of native pgx connections. It doesn't
// connect: Verify says how the definition and the database's table go together. It
// fails with core.ErrInvalid when the definition breaks a rule, has an id of kind
// claim.BinaryUUIDID, or pool is nil.
func NewTable(pool *pgxpool.Pool, def claim.Table) (*Table, error) {
	if pool == nil {
		return nil, fmt.Errorf("pgclaim: new table: %w: the pool is nil", core.ErrInvalid)
	}
	return newTable(onPool(pool), def)
}

// NewSQLTable returns a Table on a *sql.DB whose driver is pgx/stdlib. It doesn't
// connect. It fails like NewTable.
func NewSQLTable(db *sql.DB, def claim.Table) (*Table, error) {
	if db == nil {
		return nil, fmt.Errorf("pgclaim: new table: %w: the database is nil", core.ErrInvalid)
	}
	return newTable(onSQL(db), def)
}

func newTable(h handle, def claim.Table) (*Table, error) {
	if err := def.Check(); err != nil {
		return nil, fmt.Errorf("pgclaim: new table: %w", err)
	}
	if def.ID.Kind == claim.BinaryUUIDID {
		return nil, fmt.Errorf("pgclaim: new table: %w: ID.Kind is %s; Postgres has a uuid type: want UUIDID", core.ErrInvalid, def.ID.Kind)
	}
	limits := sqltable.Limits{Rows: chunkRows, Bytes: chunkBytes, Unfit: unfit}
	return &Table{def: def, name: claim.QuoteTable(def.Name, '"'), engine: sqltable.New(def, limits), handle: h}, nil
}

package mysqlclaim

import (
	"database/sql"
	"fmt"
	"sync/atomic"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// Table works on the rows of a user's own table, described by a claim.Table.
// Its methods may be called concurrently.
type Table struct {
	db     *sql.DB
	def    claim.Table
	quoted string
	engine *sqltable.Engine
	known  atomic.Pointer[catalog] // what was read about the table, nil: nothing yet
}

// NewTable returns a Table on db, a pool to the primary, which it never closes.
// It doesn't talk to the server: Verify tells whether the table is as def says.
// Errors are core.ErrInvalid.
func NewTable(db *sql.DB, def claim.Table) (*Table, error) {
	if db == nil {
		return nil, fmt.Errorf("mysqlclaim: new table: %w: db is nil", core.ErrInvalid)
	}
	if err := def.Check(); err != nil {
		return nil, fmt.Errorf("mysqlclaim: new table: %w", err)
	}
	limits := sqltable.Limits{Rows: chunkRows, Bytes: chunkBytes, Unfit: unfit}
	// States are compared by the server when they are read too; see statement.state.
	return &Table{db: db, def: def, quoted: claim.QuoteTable(def.Name, '`'), engine: sqltable.New(def, limits)}, nil
}

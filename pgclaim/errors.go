package pgclaim

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dueclaim/dueclaim/core"
)

// SQLSTATE codes whose own text doesn't say what to do.
const (
	codeUndefinedTable  = "42P01"
	codeUndefinedColumn = "42703"
	codeReadOnly        = "25006"
	codeNoPrivilege     = "42501"
)

// fail wraps an error at the package's edge. The driver's error, which names the
// server and never a password, stays reachable by errors.As.
func (s *Store) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case codeUndefinedTable, codeUndefinedColumn:
			return fmt.Errorf("pgclaim: %s: table %s %w: %w", op, s.table, core.ErrNotMigrated, err)
		case codeReadOnly:
			return fmt.Errorf("pgclaim: %s: the server is read-only; connect to the primary: %w", op, err)
		}
	}
	return fmt.Errorf("pgclaim: %s: %w", op, err)
}

// fail is like Store's, but leaves refusals as they are, and a table of the
// user's is his to make.
func (t *Table) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*core.BatchError](err); ok {
		return refused
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case codeUndefinedTable, codeUndefinedColumn:
			return fmt.Errorf("pgclaim: %s: the table %s doesn't fit its definition (Verify says more): %w", op, t.def.Name, err)
		case codeReadOnly:
			return fmt.Errorf("pgclaim: %s: the server is read-only; connect to the primary: %w", op, err)
		}
	}
	return fmt.Errorf("pgclaim: %s: %w", op, err)
}

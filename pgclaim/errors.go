package pgclaim

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dueclaim/dueclaim/core"
)

// SQLSTATE codes whose own text doesn't say what to do.
const (
	codeUndefinedTable  = "42P01"
	codeUndefinedColumn = "42703"
	codeReadOnly        = "25006"
	codeNoPrivilege     = "42501"
	codeBadParameter    = "22023"
	codeLockTimeout     = "55P03"
)

// undone marks an error as core.ErrNotDone.
type undone struct{ err error }

func (u undone) Error() string   { return core.ErrNotDone.Error() + ": " + u.err.Error() }
func (u undone) Unwrap() []error { return []error{core.ErrNotDone, u.err} }

// notDone marks err where it proves that its statement, a transaction of its own, has
// changed nothing.
func notDone(err error) error {
	if _, ok := errors.AsType[undone](err); !ok && provesNotDone(err) {
		return undone{err}
	}
	return err
}

// abortClasses are the classes of SQLSTATE with which the server ends a statement, and
// its transaction, in the middle: data, constraints, rights, locks, resources, time-outs.
// Others (08, 57P01, 58, XX) may come from a pooler or after a commit: a server that is
// shut down while a commit waits for its standby has committed.
const abortClasses = " 0A 21 22 23 25 28 2B 34 3D 3F 40 42 44 53 54 55 P0 "

func provesNotDone(err error) bool {
	if pgconn.SafeToRetry(err) || errors.Is(err, sqldriver.ErrBadConn) { // it was never sent
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok || len(pg.Code) != 5 || pg.Code == "40003": // statement_completion_unknown
		return false
	case pg.Code == "57014", pg.Code == "57P05": // cancelled; the session had idled too long
		return true
	default:
		return strings.Contains(abortClasses, " "+pg.Code[:2]+" ")
	}
}

// isLate tells whether {inTime} undid a statement.
func isLate(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == codeBadParameter && strings.Contains(pg.Message, tooLate)
}

// isReadOnly tells whether the server took no write: a standby, or a primary that has
// become one.
func isReadOnly(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == codeReadOnly
}

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
	if isLate(err) {
		return fmt.Errorf("pgclaim: %s: the call's By had passed when the server came to it: %w", op, err)
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

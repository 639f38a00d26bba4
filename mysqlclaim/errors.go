package mysqlclaim

import (
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/dueclaim/dueclaim/core"
)

// Server error numbers with a meaning of their own here.
const (
	errChanged      = 1020 // MariaDB: the row changed since the transaction's snapshot
	errTableExists  = 1050
	errNoColumn     = 1054
	errDuplicate    = 1062
	errNoTable      = 1146
	errNoKey        = 1176
	errCollation    = 1253 // of another character set
	errCollations   = 1267 // that don't mix
	errPacketTooBig = 1153
	errLockTimeout  = 1205
	errDeadlock     = 1213
	errReadOnly     = 1290
	errReadOnlyTx   = 1792
	errReadOnlyMode = 1836

	errLate = 1690 // what text.intime raises

	errRowSize        = 1118
	errNoRight        = 1143 // to write a column
	errIncorrectValue = 1366 // for a column: another character set, no number
	errConvertedLess  = 1977 // MariaDB: a character set lacks a character
	errCheck          = 3819 // MySQL: a CHECK is violated
	errCannotConvert  = 3854 // MySQL: from one character set to another
)

// fail wraps an error of the driver once, with what was being done and, where
// the number tells, what to do about it. The driver's error stays reachable by
// errors.As and errors.Is. Nothing else is classified: an error that isn't a
// *core.BatchError means an unknown outcome.
func (s *Store) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	switch number(err) {
	case errNoTable, errNoColumn:
		return fmt.Errorf("mysqlclaim: %s: table %s %w: %w", op, s.table, core.ErrNotMigrated, err)
	}
	return fmt.Errorf("mysqlclaim: %s: %s%w", op, hint(err), err)
}

// undone tells whether an error of a statement that is a transaction of its own says
// that the statement changed nothing.
func undone(err error) bool {
	var e unsent
	return errors.As(err, &e) || readOnly(err) || number(err) == errLate || number(err) == errLockTimeout
}

// readOnly tells whether an error says that the server, or the session, takes no writes.
func readOnly(err error) bool {
	switch number(err) {
	case errReadOnly, errReadOnlyTx, errReadOnlyMode:
		return true
	}
	return false
}

// hint says what to do about an error whose number tells, with a colon behind it.
func hint(err error) string {
	switch number(err) {
	case errReadOnly, errReadOnlyTx, errReadOnlyMode:
		return "the server is read-only (a replica, or a fail-over is under way); mysqlclaim needs the primary: "
	case errLate:
		return "the call came after its time: "
	case errLockTimeout:
		return "the table is locked (LOCK TABLES, an ALTER TABLE that waits for somebody, a backup): "
	case errPacketTooBig:
		return "max_allowed_packet is too small for this task's payload: "
	}
	return ""
}

// failTx is fail for statements in the caller's transaction.
func (s *Store) failTx(op string, err error) error {
	if mustRollBack(err) {
		return fmt.Errorf("mysqlclaim: %s: %s%w", op, rollBack, err)
	}
	return s.fail(op, err)
}

const rollBack = "roll the transaction back, all of it, and run it again: "

func mustRollBack(err error) bool {
	switch number(err) {
	case errLockTimeout, errDeadlock, errChanged:
		return true
	}
	return false
}

// number returns the server's error number, 0 where err isn't the server's.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

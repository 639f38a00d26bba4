package mysqlclaim

import (
	"context"
	"time"
)

// serverClock is the server's time in microseconds since 1970 at the moment when it is
// evaluated. UTC_TIMESTAMP and NOW are the moment at which the statement began, however
// long it then waited for a lock, and SYSDATE is the real one, but in the session's zone.
// None of it depends on that zone (UNIX_TIMESTAMP(NOW()) is an hour off in the hour that a
// zone repeats in autumn), or on a session that was told another time (SET timestamp).
const serverClock = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)))"

const clockQuery = "SELECT " + serverClock

// Now returns the server's clock, in microseconds.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var us int64
	if err := s.db.QueryRowContext(ctx, clockQuery).Scan(&us); err != nil {
		return time.Time{}, s.fail("now", err)
	}
	return time.UnixMicro(us).UTC(), nil
}

// intime appends a condition that is true up to an instant of the server's clock, and
// after it ends the statement with errLate: the greatest integer there is plus one. So
// a statement that was given up while it waited changes nothing, in no row. It must stand
// where it is evaluated after every wait.
func (t *text) intime(by time.Time) *text {
	return t.sql("(18446744073709551615 + (", serverClock, " > ").int(by.UnixMicro()).sql("))")
}

// andInTime appends it to other conditions; a zero by is none.
func (t *text) andInTime(by time.Time) *text {
	if by.IsZero() {
		return t
	}
	return t.sql(" AND ").intime(by)
}

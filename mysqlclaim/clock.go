package mysqlclaim

import (
	"context"
	"time"
)

// UTC_TIMESTAMP doesn't depend on the session's time zone. UNIX_TIMESTAMP(NOW())
// does: it is an hour off in the hour that a zone repeats in autumn.
const clockQuery = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"

// Now returns the server's clock, in microseconds.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var us int64
	if err := s.db.QueryRowContext(ctx, clockQuery).Scan(&us); err != nil {
		return time.Time{}, s.fail("now", err)
	}
	return time.UnixMicro(us).UTC(), nil
}

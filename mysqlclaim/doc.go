// Package mysqlclaim is a core.Store on MySQL 8.0.19+ and MariaDB 10.6+ through
// database/sql and github.com/go-sql-driver/mysql. The table's shape and its
// transitions are described in package claim.
//
// # The connection
//
// Give it a pool to the primary, and nothing but the primary: a claim is read
// back by a plain SELECT, which a read/write splitter would send to a replica
// that hasn't seen the claim yet. A locking read would be routed right, but
// would wait for other people's locks. The Store checks at first use that the
// server takes writes, and after each claim that the read-back saw what was
// written.
//
// Any DSN will do: parseTime, loc, charset, clientFoundRows, interpolateParams,
// multiStatements, sql_mode, transaction_isolation but READ UNCOMMITTED. Autocommit
// must stay on. Statements set the session variables that they need for themselves
// alone; docs/operations.md has a table of all that matter. max_allowed_packet, on the server and in the DSN, must hold the
// largest payload twice over (4 MiB is enough for every task).
//
// # Statements
//
// Every transition is one autocommit statement that finds its rows by primary
// key and passes over rows which another transaction has locked (FOR UPDATE SKIP
// LOCKED in a derived table). So it never waits for a row lock, no lock outlives
// a reply, and a worker that is stopped in the middle blocks nobody. MySQL can't
// limit the lock wait of one statement (innodb_lock_wait_timeout is not a
// SET_VAR hint), and a transaction around a locking SELECT and an UPDATE would
// leave the rows locked for as long as its worker is frozen or cut off. For the lock of a
// whole table (LOCK TABLES, an ALTER TABLE behind a long reader, a backup's) a statement
// waits a second. A call with a By has its moment as a condition that is evaluated where
// the statement changes something, after each wait, by SYSDATE: NOW is when it began. An
// INSERT may wait for another transaction that is inserting the same id; it looks at the
// clock once more after its last row, and takes everything back if it is too late. With
// statement-based replication SKIP LOCKED is unsafe: use binlog_format ROW, the
// default, or MIXED.
//
// MariaDB can be told not to wait (SET STATEMENT innodb_lock_wait_timeout = 0). There
// claims, extensions and completions that are kept are first tried as a plain UPDATE,
// which costs half as much, and which changes nothing and fails at once where one of
// its rows is locked; only then follows the statement that passes over locked rows.
//
// MySQL can't return the rows that an UPDATE changed (no RETURNING), so what
// a statement did not change is read back by a second one. What others do to a row
// in between shows: of several ids in one call, one that was changed as asked and
// then changed again by somebody else within those milliseconds may be answered as
// it is then, for example a retry that was recorded, came due at once and was
// claimed elsewhere as ErrLeaseLost. It can't make two holders, and nothing is
// lost. A call with one id has no such gap. (A transaction around both would
// close it, and would bring back the locks of a frozen worker.)
//
// # Operators
//
// The view <table>_view shows ids, queue, kind and error as text and times as
// times (UTC). By hand, change the table so:
//
//	cancel      UPDATE dueclaim_tasks SET status = 'cancelled', due = NULL, lease_until = 0,
//	            finished_at = UNIX_TIMESTAMP() * 1000
//	            WHERE queue = 'default' AND id = 'order-17' AND status = 'pending'
//	run again   UPDATE dueclaim_tasks SET status = 'pending', finished_at = NULL, attempts = 0,
//	            crashes = 0, due = UNIX_TIMESTAMP() * 1000, planned = UNIX_TIMESTAMP() * 1000
//	            WHERE queue = 'default' AND id = 'order-17' AND status = 'dead'
//
// # Limits
//
// On multi-writer clusters (Galera, Group Replication with several primaries)
// send everything to one node. What the database's own fail-over drops is lost.
//
// # A table of your own
//
// [NewTable] claims the rows of a table of yours; package claim has its modes and
// what they promise, and [Table.Verify] says what a table lacks. Statements have
// the same shape, and find rows by the unique index of the id. Each string is
// given the character set of the column beside it; an id is looked up by the
// column's collation and then compared byte by byte.
//
// DATETIMEs are what the column's Zone says, whatever zones the session and the
// driver are in. TIMESTAMPs are instants: a SELECT runs in UTC for their sake, by
// a hint (MySQL) or SET STATEMENT (MariaDB), and an UPDATE compares seconds since
// 1970. It doesn't run in UTC, since your triggers and defaults might write the
// wrong time then; so in a session zone with summer time what it writes into a
// TIMESTAMP may be an hour off, early or late, in the hour that clocks show twice.
// Use a session in UTC.
//
// In mode StatusUpdated each row takes a statement of its own, as only its row
// count tells who won: a few at a time, on as many connections. One that loses a
// deadlock leaves its row as it was, and is answered as if the row were locked.
package mysqlclaim

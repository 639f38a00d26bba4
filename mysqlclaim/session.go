package mysqlclaim

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// dialect is what a statement's beginning depends on.
type dialect struct {
	mariadb  bool
	snapshot bool // MariaDB that has innodb_snapshot_isolation
}

// Session variables that statements set for themselves, as what a DSN or a server's
// configuration has there would change what they mean.
const (
	// A statement waits this long, in seconds, for the lock of a whole table (LOCK TABLES,
	// an ALTER, a backup's), which the servers let it do for a year. One whose caller has
	// gone would wait on, and each repeat on a connection more. It is under the time that
	// core gives a call, so that the end is known.
	shortWait = "lock_wait_timeout = 1"
	allRows   = "sql_select_limit = 18446744073709551615"
	anyUpdate = "sql_safe_updates = 0"
	// A row lock is not waited for at all (MariaDB; MySQL can't set it for a statement).
	noWait = "innodb_lock_wait_timeout = 0"
	// MariaDB, from 11.6.2 on by default: what changed since the transaction's snapshot
	// can't be written. A heartbeat changes the row that SettleTx writes.
	newestRows = "innodb_snapshot_isolation = OFF"
)

// set returns a statement that runs with variables of its own.
func (d dialect) set(stmt string, variables ...string) string {
	if len(variables) == 0 {
		return stmt
	}
	if d.mariadb {
		return "SET STATEMENT " + strings.Join(variables, ", ") + " FOR " + stmt
	}
	verb, rest, _ := strings.Cut(stmt, " ")
	return verb + " /*+ SET_VAR(" + strings.Join(variables, ") SET_VAR(") + ") */ " + rest
}

// sessionQuery finds out what can't be set for a statement alone. @@read_only is a word
// in newer MariaDB, a number elsewhere; the isolation level has two names. SLEEP makes
// SYSDATE differ from NOW.
const sessionQuery = "SELECT CAST(SLEEP(0.001) AS CHAR), VERSION(), CAST(@@autocommit AS CHAR), CAST(@@read_only AS CHAR), " +
	"CAST(@@innodb_read_only AS CHAR), CAST(@@completion_type AS CHAR), /*!80000 @@transaction_isolation *//*M! @@tx_isolation */, CAST(SYSDATE(6) = NOW(6) AS CHAR)"

// examine finds out whether the server and the session can do what the statements need,
// so that the error says so instead of a late surprise.
func examine(ctx context.Context, conn conn) (d dialect, err error) {
	var slept, frozen, version, autocommit, readOnly, innodb, completion, isolation string
	if err := one(ctx, conn, sessionQuery, nil, &slept, &version, &autocommit, &readOnly, &innodb, &completion, &isolation, &frozen); err != nil {
		return d, err
	}
	if slept != "0" {
		return d, errors.New("what this pool's connections read isn't in ASCII: character_set_results must be NULL or a character set of which ASCII is a part, such as utf8mb4")
	}
	d.mariadb, d.snapshot = isMariaDB(version), snapshotIsolation(version)
	switch {
	case !supported(version):
		return d, fmt.Errorf("server version %s; want MySQL 8.0.19 or MariaDB 10.6 or newer", version)
	case off(autocommit):
		return d, errors.New("autocommit is off on this pool's connections, so nothing would be committed; remove it from the DSN or init_connect")
	case completion != "0" && !strings.EqualFold(completion, "NO_CHAIN"):
		return d, fmt.Errorf("completion_type is %s on this pool's connections, so that after a COMMIT nothing more might be committed; set it to NO_CHAIN", completion)
	case frozen == "1":
		return d, errors.New("the server runs with sysdate-is-now, so that a statement can't tell how long it has waited; start it without")
	case !off(readOnly), !off(innodb):
		return d, errReplica
	case strings.EqualFold(isolation, "READ-UNCOMMITTED"):
		return d, errors.New("the isolation level of this pool's connections is READ UNCOMMITTED, so that they would see what others haven't committed; use READ COMMITTED or REPEATABLE READ")
	}
	return d, nil
}

var errReplica = errors.New("the server is read-only (a replica?); mysqlclaim needs the primary")

// show returns a query for those of the variables that the server has. SHOW VARIABLES
// is cut off by sql_select_limit too, and takes no hints.
func (d dialect) show(names string) string {
	if d.mariadb {
		return d.set("SHOW VARIABLES WHERE variable_name IN ("+names+")", allRows)
	}
	return d.set("SELECT variable_name, variable_value FROM performance_schema.session_variables WHERE variable_name IN ("+names+")", allRows)
}

func off(v string) bool { return v == "0" || strings.EqualFold(v, "OFF") }

func isMariaDB(version string) bool { return strings.Contains(strings.ToLower(version), "mariadb") }

// supported tells whether a version has FOR UPDATE SKIP LOCKED, and VALUES as a table.
func supported(version string) bool {
	if isMariaDB(version) {
		return atLeast(version, 10, 6)
	}
	return atLeast(version, 8, 0, 19)
}

// snapshotIsolation tells whether a version has innodb_snapshot_isolation, which came
// to several of MariaDB's at once.
func snapshotIsolation(version string) bool {
	if !isMariaDB(version) {
		return false
	}
	for _, since := range [][]int{{10, 6, 18}, {10, 11, 8}, {11, 0, 6}, {11, 1, 5}, {11, 2, 4}, {11, 4, 2}} {
		if atLeast(version, since...) && !atLeast(version, since[0], since[1]+1) {
			return true
		}
	}
	return atLeast(version, 11, 5)
}

// atLeast tells whether a version is this one or newer.
func atLeast(version string, want ...int) bool {
	var got [3]int
	n, _ := fmt.Sscanf(version, "%d.%d.%d", &got[0], &got[1], &got[2])
	if n < 2 {
		return false
	}
	for i, w := range want {
		if got[i] != w {
			return got[i] > w
		}
	}
	return true
}

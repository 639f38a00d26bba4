package mysqlclaim

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// scripted returns a Store on a driver that follows a script to the letter:
// every statement is compared as a whole, and none has arguments.
func scripted(t *testing.T) (*Store, sqlmock.Sqlmock) {
	t.Helper()
	db, script, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	require.NoError(t, err)
	s, err := New(db, Options{})
	require.NoError(t, err)
	s.known.Store(new(dialect))
	t.Cleanup(func() {
		require.NoError(t, script.ExpectationsWereMet())
		_ = db.Close() // the script has no line for it, as a connection may be closed before
	})
	return s, script
}

const (
	claimOfA = "UPDATE /*+ SET_VAR(lock_wait_timeout = 1) SET_VAR(sql_safe_updates = 0) */ (SELECT id, status, token, attempts, crashes FROM `dueclaim_tasks` FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN (_binary'a')" +
		" AND due <= 1893553445678 AND (status = 'pending' OR (status = 'running' AND lease_until < 1893553445678 AND holder <> _binary'h')) LIMIT 1 FOR UPDATE SKIP LOCKED) AS was" +
		" STRAIGHT_JOIN `dueclaim_tasks` AS t FORCE INDEX (PRIMARY) ON t.queue = _binary'default' AND t.id = was.id" +
		" SET t.crashes = was.crashes + (was.status = 'running'), t.attempts = was.attempts + 1, t.token = was.token + 1, t.status = 'running', t.holder = _binary'h', t.lease_until = 1893553475678"
	readA = "SELECT /*+ SET_VAR(lock_wait_timeout = 1) SET_VAR(sql_select_limit = 18446744073709551615) */ id, status, COALESCE(due, 0), planned, token, holder, lease_until, attempts, crashes, max_attempts, kind," +
		" IF(holder = _binary'h', payload, NULL), IF(holder = _binary'h', meta, NULL)" +
		" FROM `dueclaim_tasks` FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN (_binary'a')"
	insertA  = "INSERT /*+ SET_VAR(lock_wait_timeout = 1) SET_VAR(sql_safe_updates = 0) */ " + insertsA
	insertsA = "INTO `dueclaim_tasks` (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at) " +
		"WITH v (id, due, max_attempts, kind, payload, meta) AS (VALUES ROW(_binary'a', 1893553445678, 0, _binary'mail', _binary'to a', x''))" +
		" SELECT _binary'default', v.id, 'pending', v.due, v.due, " + token + ", v.max_attempts, v.kind, v.payload, v.meta, _binary'c', 1893553445678" +
		" FROM (SELECT " + serverClock + " AS now) AS c STRAIGHT_JOIN v WHERE TRUE"
	againA   = insertA + " ON DUPLICATE KEY UPDATE id = VALUES(id)"
	whatIsA  = "SELECT /*+ SET_VAR(lock_wait_timeout = 1) SET_VAR(sql_select_limit = 18446744073709551615) */ " + stateOfA
	stateOfA = "id, status, COALESCE(due, 0), token, holder, lease_until, call_id FROM `dueclaim_tasks` FORCE INDEX (PRIMARY) WHERE queue = _binary'default' AND id IN (_binary'a')"
	// How long they wait in the user's transaction is the user's.
	inTxA       = "SELECT /*+ SET_VAR(sql_select_limit = 18446744073709551615) */ " + stateOfA
	insertInTxA = "INSERT /*+ SET_VAR(sql_safe_updates = 0) */ " + insertsA
)

func serverSays(number uint16, message string) error {
	return &mysql.MySQLError{Number: number, Message: message}
}

// failures that a driver has, and words that the error must have beside them.
var driverErrors = []struct {
	name string
	err  error
	says string
}{
	{"a lost reply", mysql.ErrInvalidConn, ""},
	{"a reset connection", &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, "connection reset"},
	{"a lost deadlock", serverSays(1213, "Deadlock found"), ""},
	{"a lock wait time-out", serverSays(1205, "Lock wait timeout exceeded"), ""},
	{"a missing table", serverSays(1146, "Table doesn't exist"), "table dueclaim_tasks is missing or has another shape: run Migrate"},
	{"an older table", serverSays(1054, "Unknown column"), "run Migrate"},
	{"a read-only server", serverSays(1290, "--read-only"), "needs the primary"},
	{"a read-only transaction", serverSays(1792, "READ ONLY transaction"), "needs the primary"},
	{"a read-only mode", serverSays(1836, "read-only mode"), "needs the primary"},
	{"too small a packet", serverSays(1153, "packet bigger"), "max_allowed_packet"},
	{"an ended context", context.DeadlineExceeded, ""},
}

// wantDriverError fails unless err is the driver's, wrapped once, and no answer.
func wantDriverError(t *testing.T, want error, says string, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	var batch *core.BatchError
	assert.False(t, errors.As(err, &batch), "an unknown outcome is no answer: %v", err)
	assert.Contains(t, err.Error(), "mysqlclaim: ")
	assert.Contains(t, err.Error(), says)
}

func TestAnErrorOfTheDriverIsReturnedAsItIs(t *testing.T) {
	for _, d := range driverErrors {
		t.Run(d.name, func(t *testing.T) {
			// Each step has a script of its own: a connection to a read-only server is dropped.
			s, script := scripted(t)
			script.ExpectExec(claimOfA).WillReturnError(d.err)
			_, err := s.Claim(t.Context(), []core.ID{"a"}, leaseOf("h", base))
			wantDriverError(t, d.err, d.says, err)

			s, script = scripted(t)
			script.ExpectExec(claimOfA).WillReturnResult(driver.RowsAffected(1))
			script.ExpectQuery(readA).WillReturnError(d.err)
			_, err = s.Claim(t.Context(), []core.ID{"a"}, leaseOf("h", base))
			wantDriverError(t, d.err, d.says, err)

			s, script = scripted(t)
			script.ExpectExec(insertA).WillReturnError(d.err)
			err = s.Insert(t.Context(), callNamed("c"), []core.Task{task("a")})
			wantDriverError(t, d.err, d.says, err)

			s, script = scripted(t)
			script.ExpectExec(insertA).WillReturnError(serverSays(1062, "Duplicate entry"))
			script.ExpectExec(againA).WillReturnResult(driver.RowsAffected(0))
			script.ExpectQuery(whatIsA).WillReturnError(d.err)
			err = s.Insert(t.Context(), callNamed("c"), []core.Task{task("a")})
			wantDriverError(t, d.err, d.says, err)
		})
	}
}

func TestAFailedReadInTheMiddleIsNoAnswer(t *testing.T) {
	s, script := scripted(t)
	rows := sqlmock.NewRows([]string{"id", "status", "due", "token", "holder", "lease_until", "call_id"}).
		AddRow("a", "running", 1, 5, "h", 9, "c").RowError(0, mysql.ErrInvalidConn)
	script.ExpectExec(insertA).WillReturnError(serverSays(1062, "Duplicate entry"))
	script.ExpectExec(againA).WillReturnResult(driver.RowsAffected(0))
	script.ExpectQuery(whatIsA).WillReturnRows(rows)
	err := s.Insert(t.Context(), callNamed("c"), []core.Task{task("a")})
	wantDriverError(t, mysql.ErrInvalidConn, "", err)
}

// The counts that clientFoundRows changes are those of rows matched and left as
// they are: 1 instead of 0 here.
func TestNoCountSaysWhetherARowWasInserted(t *testing.T) {
	for _, count := range []int64{0, 1, 2} {
		s, script := scripted(t)
		columns := []string{"id", "status", "due", "token", "holder", "lease_until", "call_id"}
		script.ExpectExec(insertA).WillReturnError(serverSays(1062, "Duplicate entry"))
		script.ExpectExec(againA).WillReturnResult(driver.RowsAffected(count))
		script.ExpectQuery(whatIsA).WillReturnRows(sqlmock.NewRows(columns).AddRow("a", "running", 1, 5, "h", 9, "another"))
		require.ErrorIs(t, s.Insert(t.Context(), callNamed("c"), []core.Task{task("a")}), core.ErrExists)
	}
}

func TestAReadBackFromAReplicaIsNoticed(t *testing.T) {
	s, script := scripted(t)
	columns := []string{"id", "status", "due", "planned", "token", "holder", "lease_until", "attempts", "crashes", "max_attempts", "kind", "payload", "meta"}
	script.ExpectExec(claimOfA).WillReturnResult(driver.RowsAffected(1))
	script.ExpectQuery(readA).WillReturnRows(sqlmock.NewRows(columns).AddRow("a", "pending", 1, 1, 5, "", 0, 0, 0, 0, "", nil, nil))
	_, err := s.Claim(t.Context(), []core.ID{"a"}, leaseOf("h", base))
	require.ErrorContains(t, err, "the read-back saw 0 of 1 claimed rows")
}

func TestAnUnfitServerIsNamedAtFirstUse(t *testing.T) {
	columns := []string{"sleep", "version", "autocommit", "read_only", "innodb_read_only", "completion_type", "isolation", "frozen"}
	for name, c := range map[string]struct {
		version, autocommit, readOnly, innodb, completion, isolation string
		frozen                                                       int
		says                                                         string
	}{
		"old MySQL":       {"5.7.44-log", "1", "0", "0", "NO_CHAIN", "REPEATABLE-READ", 0, "server version 5.7.44-log; want MySQL 8.0.19 or MariaDB 10.6"},
		"old MariaDB":     {"10.5.29-MariaDB", "1", "0", "0", "NO_CHAIN", "REPEATABLE-READ", 0, "server version 10.5.29-MariaDB"},
		"no autocommit":   {"8.4.3", "0", "0", "0", "NO_CHAIN", "REPEATABLE-READ", 0, "autocommit is off"},
		"a replica":       {"8.0.40", "1", "1", "0", "NO_CHAIN", "REPEATABLE-READ", 0, "the server is read-only"},
		"a newer replica": {"12.1.2-MariaDB", "1", "READ_ONLY_NO_LOCK", "0", "NO_CHAIN", "REPEATABLE-READ", 0, "the server is read-only"},
		"an Aurora one":   {"8.0.39", "1", "0", "1", "NO_CHAIN", "REPEATABLE-READ", 0, "the server is read-only"},
		"chains":          {"8.0.39", "1", "0", "0", "CHAIN", "REPEATABLE-READ", 0, "completion_type is CHAIN"},
		"dirty reads":     {"8.0.39", "1", "0", "0", "NO_CHAIN", "READ-UNCOMMITTED", 0, "READ UNCOMMITTED"},
		"sysdate-is-now":  {"8.0.39", "1", "0", "0", "NO_CHAIN", "REPEATABLE-READ", 1, "sysdate-is-now"},
	} {
		t.Run(name, func(t *testing.T) {
			s, script := scripted(t)
			s.known.Store(nil)
			for range 2 { // it is asked again until it is fit
				script.ExpectQuery(sessionQuery).WillReturnRows(sqlmock.NewRows(columns).
					AddRow(0, c.version, c.autocommit, c.readOnly, c.innodb, c.completion, c.isolation, c.frozen))
				require.ErrorContains(t, s.Extend(t.Context(), []core.Grant{{ID: "a"}}, base), c.says)
			}
		})
	}
	for _, version := range []string{"8.0.19", "8.4.0", "9.7.4-2", "10.6.0-MariaDB-log", "11.8.2-MariaDB-ubu2404", "10.11.19-MariaDB-0+deb12u1"} {
		assert.True(t, supported(version), version)
	}
	for _, version := range []string{"", "5.5.5", "8.0.18", "10.4.1-mariadb", "8"} {
		assert.False(t, supported(version), version)
	}
}

func TestInATransactionALostLockSaysRollBack(t *testing.T) {
	for _, number := range []uint16{1205, 1213, 1020} {
		s, script := scripted(t)
		lost := serverSays(number, "lost")
		script.ExpectBegin()
		script.ExpectQuery(inTxA).WillReturnRows(sqlmock.NewRows([]string{"id"}))
		script.ExpectExec(insertInTxA).WillReturnError(lost)
		script.ExpectRollback()
		tx, err := s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		err = s.InsertTx(t.Context(), tx, callNamed("c"), []core.Task{task("a")})
		wantDriverError(t, lost, "roll the transaction back", err)
		require.NoError(t, tx.Rollback())
	}
}

// The commit is the caller's, and so is its error; what InsertTx said before it
// counts only when it succeeded.
func TestTheCallersCommitErrorIsTheCallers(t *testing.T) {
	s, script := scripted(t)
	script.ExpectBegin()
	script.ExpectQuery(inTxA).WillReturnRows(sqlmock.NewRows([]string{"id"}))
	script.ExpectExec(insertInTxA).WillReturnResult(driver.RowsAffected(1))
	script.ExpectCommit().WillReturnError(mysql.ErrInvalidConn)
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, s.InsertTx(t.Context(), tx, callNamed("c"), []core.Task{task("a")}))
	require.ErrorIs(t, tx.Commit(), mysql.ErrInvalidConn)
}

func TestAnUnreachableServerIsNamedWithoutThePassword(t *testing.T) {
	s, err := New(open(t, "worker:hush-hush@tcp(127.0.0.1:1)/db", "timeout=2s"), Options{})
	require.NoError(t, err)
	_, now := s.Now(t.Context())
	for _, err := range []error{s.Migrate(t.Context()), s.Insert(t.Context(), callNamed("c"), []core.Task{task("a")}), now} {
		require.ErrorContains(t, err, "127.0.0.1:1")
		assert.NotContains(t, err.Error(), "hush-hush")
	}
}

func TestAMissingTableSaysMigrate(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s, err := New(open(t, b.database(t), ""), Options{})
		require.NoError(t, err)
		ctx := t.Context()
		_, claims := s.Claim(ctx, []core.ID{"a"}, leaseOf("h", base))
		_, waits := s.Waiting(ctx, base, core.Entry{}, at(1), 1)
		_, purges := s.Purge(ctx, base, 1)
		for _, err := range []error{
			claims, waits, purges,
			s.Insert(ctx, callNamed("c"), []core.Task{task("a")}),
			s.Extend(ctx, []core.Grant{{ID: "a"}}, base),
		} {
			require.ErrorContains(t, err, "table dueclaim_tasks is missing or has another shape: run Migrate")
			var e *mysql.MySQLError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, uint16(1146), e.Number)
		}
	})
}

func TestAReadOnlySessionSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		newStore(t, open(t, dsn, ""), Options{})
		variable := map[string]string{"store:mariadb": "tx_read_only", "store:mysql": "transaction_read_only"}[b.name]
		s, err := New(open(t, dsn, variable+"=1"), Options{})
		require.NoError(t, err)
		require.ErrorContains(t, s.Insert(t.Context(), callNamed("c"), []core.Task{task("a")}), "read-only")
	})
}

func TestNowIsTheServersClockInUTCUnderAnyTimeZone(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		for _, zone := range []string{"", "time_zone=%27%2B12%3A45%27", "time_zone=%27-11%3A30%27&parseTime=true&loc=Asia%2FShanghai"} {
			s, err := New(open(t, dsn, zone), Options{})
			require.NoError(t, err)
			before := time.Now().Add(-time.Second) // the clock is the same, the readings may differ by little
			now, err := s.Now(t.Context())
			require.NoError(t, err)
			assert.WithinRange(t, now, before, time.Now().Add(time.Second), zone)
			assert.Equal(t, time.UTC, now.Location())
		}
	})
}

package mysqlclaim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// The table "Session variables" of docs/operations.md, row by row: what a DSN, init_connect
// or the server's configuration may set, and what becomes of it. Empty: works as ever.
var sessions = []struct {
	set     string // as it stands in a DSN
	refused string // a part of the error
	only    string // the server that has it; empty: both
}{
	{set: "sql_select_limit=1"},
	{set: "sql_safe_updates=1"},
	{set: "lock_wait_timeout=31536000"},
	{set: "sql_mode=%27ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,PIPES_AS_CONCAT,IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION,REAL_AS_FLOAT%27"},
	{set: "sql_mode=%27%27"},
	{set: "sql_mode=%27PAD_CHAR_TO_FULL_LENGTH%27"},
	{set: "sql_mode=%27EMPTY_STRING_IS_NULL%27", only: "store:mariadb"},
	{set: "sql_mode=%27ORACLE%27", only: "store:mariadb"},
	{set: "sql_mode=%27SIMULTANEOUS_ASSIGNMENT,TIME_ROUND_FRACTIONAL%27", only: "store:mariadb"},
	{set: "sql_mode=%27TIME_TRUNCATE_FRACTIONAL%27", only: "store:mysql"},
	{set: "sql_auto_is_null=1"},
	{set: "timestamp=1000"},
	{set: "time_zone=%27-11%3A30%27"},
	{set: "div_precision_increment=0"},
	{set: "group_concat_max_len=4"},
	{set: "max_sort_length=64"},
	{set: "foreign_key_checks=0&unique_checks=0"},
	{set: "tmp_table_size=1024&max_heap_table_size=16384"},
	{set: "innodb_lock_wait_timeout=1"},
	{set: "low_priority_updates=1"},
	{set: "sql_big_selects=0&max_join_size=100000"},
	{set: "optimizer_switch=%27derived_merge=off,index_condition_pushdown=off,mrr=on%27"},
	{set: "optimizer_switch=%27derived_condition_pushdown=off,derived_merge=on%27", only: "store:mysql"},
	{set: "optimizer_switch=%27condition_pushdown_for_derived=on,split_materialized=on,derived_with_keys=off%27", only: "store:mariadb"},
	{set: "in_predicate_conversion_threshold=2", only: "store:mariadb"},
	{set: "innodb_snapshot_isolation=1", only: "store:mariadb"},
	{set: "innodb_snapshot_isolation=0", only: "store:mariadb"},
	{set: "max_statement_time=20", only: "store:mariadb"},
	{set: "max_execution_time=20000", only: "store:mysql"},
	{set: "character_set_results=utf16", refused: "character_set_results"},
	{set: "character_set_results=NULL"},
	{set: "default_collation_for_utf8mb4=utf8mb4_general_ci", only: "store:mysql"},
	{set: "binlog_format=MIXED"},
	{set: "binlog_format=ROW&binlog_row_image=minimal"},
	{set: "isolation=READ-COMMITTED"},
	{set: "isolation=REPEATABLE-READ"},
	{set: "isolation=SERIALIZABLE"},
	{set: "isolation=READ-UNCOMMITTED", refused: "READ UNCOMMITTED"},
	{set: "autocommit=0", refused: "autocommit is off"},
	{set: "completion_type=1", refused: "completion_type is CHAIN"},
	{set: "completion_type=2", refused: "completion_type is RELEASE"},
	{set: "readonly=1", refused: "read-only"},
}

func TestSessionVariablesDontChangeWhatStatementsMean(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for i, c := range sessions {
			if c.only != "" && c.only != b.name {
				continue
			}
			t.Run(c.set, func(t *testing.T) {
				dsn := b.database(t)
				newStore(t, open(t, dsn, ""), Options{})
				db := open(t, dsn, b.options(c.set))
				s, err := New(db, Options{Queue: fmt.Sprint("q", i)})
				require.NoError(t, err)
				_, err = db.ExecContext(t.Context(), "CREATE TABLE orders (id VARCHAR(40) CHARACTER SET utf8mb4 PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'new', due BIGINT NOT NULL, "+
					"token BIGINT, holder VARCHAR(64), lease BIGINT, KEY (state, due))")
				def := claim.Table{
					Name: "orders", ID: claim.IDColumn{Name: "id"},
					State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("at work"), Done: claim.Text("done")},
					Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.UnixMilli}},
					Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease", Kind: claim.UnixMilli},
				}
				table := newTable(t, db, def)
				ids := []core.ID{"a", "b", "c"}
				if c.refused != "" {
					require.ErrorContains(t, s.Insert(t.Context(), callNamed("x"), []core.Task{task("x")}), c.refused)
					_, err := table.Claim(t.Context(), ids, leaseOf("h", base))
					if err == nil { // a SELECT says nothing of that
						err = table.Probe(t.Context())
					}
					require.ErrorContains(t, err, c.refused)
					return
				}
				require.NoError(t, err)
				own, err := New(db, Options{Table: "own"})
				require.NoError(t, err)
				require.NoError(t, own.Migrate(t.Context()))
				require.NoError(t, own.Migrate(t.Context()))
				wholeLife(t, own)
				wholeLife(t, s)
				for _, id := range ids {
					_, err := db.ExecContext(t.Context(), "INSERT INTO orders (id, due) VALUES (?, ?)", string(id), base.UnixMilli())
					require.NoError(t, err)
				}
				list, err := table.Waiting(t.Context(), at(1), core.Entry{}, endOfTime, 10)
				require.NoError(t, err)
				require.Len(t, list, 3)
				got, err := table.Claim(t.Context(), ids, leaseOf("h", base))
				require.NoError(t, err)
				var settlements []core.Settlement
				for _, c := range got {
					require.Equal(t, core.Granted, c.Verdict, c.ID)
					settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Done})
				}
				require.NoError(t, table.Settle(t.Context(), at(1), settlements))
				require.NoError(t, table.Probe(t.Context()))
				require.NoError(t, s.Probe(t.Context()))
				now, err := s.Now(t.Context())
				require.NoError(t, err)
				assert.WithinDuration(t, time.Now(), now, time.Minute)
			})
		}
	})
}

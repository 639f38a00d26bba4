package mysqlclaim

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// flaw is a fault of a table, made by editing fullTable or fullDef.
type flaw struct {
	severity claim.Severity
	code     string
	column   string
	edits    []string // of the CREATE TABLE: old, new, …
	def      func(*claim.Table)
	then     string // a statement on table %s
	only     string // a backend's name
}

const (
	fault   = claim.Fault
	warning = claim.Warning
	advice  = claim.Advice
)

var flaws = []flaw{
	{severity: fault, code: "engine", edits: []string{"ENGINE=InnoDB", "ENGINE=MyISAM"}},
	{severity: fault, code: "column-missing", column: "token", edits: []string{"token BIGINT NOT NULL DEFAULT 0,", ""}},
	{severity: fault, code: "column-missing", column: "lease", edits: []string{"lease BIGINT NULL,", ""}},
	{severity: fault, code: "column-missing", column: "body", edits: []string{"body BLOB NULL,", ""}},
	{severity: fault, code: "column-missing", column: "changed", edits: []string{"changed DATETIME(3) NULL,", ""}},
	{severity: fault, code: "column-type", column: "token", edits: []string{"token BIGINT", "token INT"}},
	{severity: fault, code: "column-type", column: "holder", edits: []string{"holder VARCHAR(64)", "holder BINARY(64)"}},
	{severity: fault, code: "column-type", column: "due", edits: []string{"due BIGINT", "due DATETIME"}},
	{severity: fault, code: "column-type", column: "changed", def: func(d *claim.Table) { d.Updated.Kind, d.Updated.Zone = claim.Timestamp, nil }},
	{severity: fault, code: "column-type", column: "attempts", edits: []string{"attempts INT", "attempts TINYINT"}},
	{severity: fault, code: "column-type", column: "failure", edits: []string{"failure TEXT CHARACTER SET utf8mb4", "failure INT"}},
	{severity: fault, code: "column-type", column: "body", edits: []string{"body BLOB", "body DOUBLE"}},
	{severity: fault, code: "column-type", column: "id", def: func(d *claim.Table) { d.ID.Kind = claim.IntegerID }},
	{severity: fault, code: "column-type", column: "id", edits: []string{"id VARCHAR(50)", "id VARCHAR(35)"}, def: func(d *claim.Table) { d.ID.Kind = claim.UUIDID }},
	{severity: fault, code: "column-type", column: "id", def: func(d *claim.Table) { d.ID.Kind = claim.BinaryUUIDID }},
	{severity: fault, code: "column-type", column: "status", edits: []string{"status ENUM('pending','processing','completed','dead') NOT NULL DEFAULT 'pending'", "status INT NOT NULL"}},
	{severity: fault, code: "column-type", column: "queue", edits: []string{"queue INT", "queue TINYINT"}, def: func(d *claim.Table) { d.Where[0].Equals = claim.Int(1000) }},
	{severity: fault, code: "id-not-unique", column: "id", edits: []string{"PRIMARY KEY (id)", "PRIMARY KEY (id, queue)"}},
	{severity: fault, code: "id-not-unique", column: "id", edits: []string{"PRIMARY KEY (id)", "PRIMARY KEY (queue, id), UNIQUE KEY hidden (id) INVISIBLE"}, only: "store:mysql"},
	{severity: fault, code: "id-not-unique", column: "id", edits: []string{"PRIMARY KEY (id)", "PRIMARY KEY (queue, id), UNIQUE KEY hidden (id) IGNORED"}, only: "store:mariadb"},
	{severity: fault, code: "id-nullable", column: "id", edits: []string{"NOT NULL,\n\tstatus", "NULL,\n\tstatus", "PRIMARY KEY (id)", "UNIQUE KEY (id)"}},
	{severity: fault, code: "enum-lacks-value", column: "status", edits: []string{"'processing',", "'it''s','a\\\\b','x,y','é',"}},
	{severity: fault, code: "enum-lacks-value", column: "queue", edits: []string{"queue INT NOT NULL DEFAULT 7", "queue ENUM('a') NOT NULL"}, def: func(d *claim.Table) { d.Where[0].Equals = claim.Text("b'") }},
	{severity: fault, code: "text-too-short", column: "holder", edits: []string{"holder VARCHAR(64)", "holder VARCHAR(63)"}},
	{severity: warning, code: "text-too-short", column: "failure", edits: []string{"failure TEXT", "failure VARCHAR(1000)"}},
	{severity: fault, code: "text-too-short", column: "status", edits: []string{"status ENUM('pending','processing','completed','dead')", "status VARCHAR(9)"}},
	{severity: fault, code: "time-digits", column: "changed", edits: []string{"DATETIME(3) NULL", "DATETIME DEFAULT CURRENT_TIMESTAMP"}},
	{severity: fault, code: "on-update", column: "due", edits: []string{"due BIGINT NOT NULL", "due DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"},
		def: func(d *claim.Table) {
			d.Due.Column = claim.TimeColumn{Name: "due", Kind: claim.DateTime, Digits: 3, Zone: time.UTC}
		}},
	{severity: fault, code: "on-update", column: "lease", edits: []string{"lease BIGINT NULL", "lease TIMESTAMP(3) NULL ON UPDATE CURRENT_TIMESTAMP(3)"},
		def: func(d *claim.Table) { d.Lease.Kind, d.Lease.Digits = claim.Timestamp, 3 }},
	{severity: fault, code: "generated", column: "attempts", edits: []string{"attempts INT NOT NULL DEFAULT 0", "attempts INT GENERATED ALWAYS AS (crashes + 1)"}},
	{severity: fault, code: "lease-not-null", column: "lease", edits: []string{"lease BIGINT NULL", "lease BIGINT NOT NULL DEFAULT 0"}},
	{severity: fault, code: "check-lacks-value", column: "status", edits: []string{"ENGINE=InnoDB", "", "PRIMARY KEY", "CONSTRAINT %[1]s_c CHECK (status IN ('pending','it''s','dead')), PRIMARY KEY"}},
	{severity: fault, code: "check-lacks-value", column: "status", edits: []string{"state',", "state' CHECK (status IN ('pending','dead')),"}, only: "store:mariadb"},
	{severity: fault, code: "charset", column: "status", edits: []string{"status ENUM('pending','processing','completed','dead')", "status VARCHAR(20) CHARACTER SET latin1"},
		def: func(d *claim.Table) { d.State.Dead = claim.Text("日") }},
	{severity: warning, code: "id-collation", column: "id", edits: []string{"COLLATE EXACT", "COLLATE utf8mb4_unicode_ci"}},
	{severity: warning, code: "id-padded", column: "id", edits: []string{"COLLATE EXACT", "COLLATE utf8mb4_bin"}},
	{severity: warning, code: "id-padded", column: "id", edits: []string{"id VARCHAR", "id CHAR"}},
	{severity: warning, code: "id-padded", column: "id", edits: []string{"id VARCHAR(50) CHARACTER SET utf8mb4 COLLATE EXACT", "id BINARY(50)"}},
	{severity: warning, code: "nullable", column: "due", edits: []string{"due BIGINT NOT NULL", "due BIGINT NULL"}},
	{severity: warning, code: "nullable", column: "status", edits: []string{"NOT NULL DEFAULT 'pending'", "NULL DEFAULT 'pending'"}},
	{severity: warning, code: "not-null-without-default", column: "token", edits: []string{"token BIGINT NOT NULL DEFAULT 0", "token BIGINT NOT NULL"}},
	{severity: warning, code: "not-null-without-default", column: "holder", edits: []string{"NOT NULL DEFAULT ''", "NOT NULL"}},
	{severity: warning, code: "not-null-without-default", column: "failure", edits: []string{"utf8mb4,", "utf8mb4 NOT NULL,"}},
	{severity: warning, code: "due-index-missing", edits: []string{"KEY sweep (queue, status, due)", "KEY other (queue, due, status)"}},
	{severity: warning, code: "due-index-missing", edits: []string{"KEY sweep (queue, status, due)", "KEY dueclaim_due (queue, status)"}},
	{severity: warning, code: "charset", column: "failure", edits: []string{"CHARACTER SET utf8mb4,", "CHARACTER SET latin1,"}},
	{severity: warning, code: "trigger", then: "CREATE TRIGGER %[1]s_tr BEFORE UPDATE ON %[1]s FOR EACH ROW SET NEW.queue = 7"},
	{severity: fault, code: "trigger", column: "changed", then: "CREATE TRIGGER %[1]s_tr BEFORE UPDATE ON %[1]s FOR EACH ROW SET NEW.`changed` = NOW(3)", def: updatedMode},
	{severity: warning, code: "trigger", then: "CREATE TRIGGER %[1]s_tr BEFORE UPDATE ON %[1]s FOR EACH ROW SET NEW.changed = IF(NEW.changed <=> OLD.changed, NOW(3), NEW.changed)", def: updatedMode},
	{severity: warning, code: "trigger", then: "CREATE TRIGGER %[1]s_tr BEFORE UPDATE ON %[1]s FOR EACH ROW SET NEW.changed = NOW(3)"},
	{severity: fault, code: "trigger", column: "lease", then: "CREATE TRIGGER %[1]s_tr BEFORE UPDATE ON %[1]s FOR EACH ROW BEGIN SET NEW.lease = 0; END"},
	{severity: advice, code: "trigger", then: "CREATE TRIGGER %[1]s_tr BEFORE UPDATE ON %[1]s FOR EACH ROW SET NEW.changed = NOW(3)", def: stepMode},
	{severity: fault, code: "on-update", column: "due", edits: []string{"due BIGINT NOT NULL", "due TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"},
		def: func(d *claim.Table) {
			d.Due = claim.DueTime{Base: claim.TimeColumn{Name: "due", Kind: claim.Timestamp}}
		}},
	{severity: claim.Info, code: "on-update", column: "due", edits: []string{"due BIGINT NOT NULL", "due TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"},
		def: func(d *claim.Table) {
			stepMode(d)
			d.Due = claim.DueTime{Base: claim.TimeColumn{Name: "due", Kind: claim.Timestamp}}
		}},
	{severity: fault, code: "id-unsigned", column: "id", edits: []string{"id VARCHAR(50) CHARACTER SET utf8mb4 COLLATE EXACT", "id BIGINT UNSIGNED"},
		then: "INSERT INTO %[1]s (id, due) VALUES (1, 1), (18446744073709551615, 1)", def: func(d *claim.Table) { d.ID.Kind = claim.IntegerID }},
	{severity: advice, code: "on-update", column: "changed", edits: []string{"DATETIME(3) NULL", "DATETIME(3) NULL ON UPDATE CURRENT_TIMESTAMP(3)"},
		def: updatedMode},
	{severity: advice, code: "check", column: "attempts", edits: []string{"PRIMARY KEY", "CONSTRAINT %[1]s_c CHECK (attempts < 5 OR crashes = 1), PRIMARY KEY"}},
	{severity: advice, code: "lease-indexed", column: "lease", edits: []string{"PRIMARY KEY", "KEY hot (status, lease), PRIMARY KEY"}},
	{severity: advice, code: "time-without-fraction", column: "changed", edits: []string{"DATETIME(3)", "DATETIME"}, def: func(d *claim.Table) { d.Updated.Digits = 0 }},
	{severity: advice, code: "time-without-fraction", column: "due", def: func(d *claim.Table) { d.Due.Column.Kind = claim.UnixSecond }},
	{severity: advice, code: "time-digits-unused", column: "changed", edits: []string{"DATETIME(3)", "DATETIME(6)"}},
	{severity: advice, code: "ends-2038", column: "due", edits: []string{"due BIGINT", "due INT"}, def: func(d *claim.Table) { d.Due.Column.Kind = claim.UnixSecond }},
	{severity: advice, code: "system-versioned", edits: []string{"ENGINE=InnoDB", "ENGINE=InnoDB WITH SYSTEM VERSIONING"}, only: "store:mariadb"},
	{severity: claim.Info, code: "id-unsigned", column: "id", edits: []string{"id VARCHAR(50) CHARACTER SET utf8mb4 COLLATE EXACT", "id BIGINT UNSIGNED"}, def: func(d *claim.Table) { d.ID.Kind = claim.IntegerID }},
}

// updatedMode is mode StatusUpdated, stepMode Transition.
func updatedMode(d *claim.Table) {
	d.Token, d.Holder, d.Lease, d.LeaseFor = "", "", claim.TimeColumn{}, time.Minute
}

func stepMode(d *claim.Table) {
	updatedMode(d)
	d.State.Processing, d.LeaseFor, d.Attempts, d.Crashes, d.LastError = claim.Value{}, 0, "", "", ""
}

// runnable is a Mend that is a statement.
var runnable = regexp.MustCompile(`^(ALTER TABLE|CREATE INDEX) `)

func TestVerifyFindsEachFaultAndItsMendEndsIt(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		for i, w := range flaws {
			if w.only != "" && w.only != b.name {
				continue
			}
			t.Run(fmt.Sprintf("%s of %s (%d)", w.code, w.column, i), func(t *testing.T) {
				t.Attr("dueclaim.backend", b.name)
				t.Parallel()
				name := fmt.Sprintf("flaw_%d", i)
				f.make(t, fullTable, name, named(w.edits, name)...)
				if w.then != "" {
					f.exec(t, fmt.Sprintf(w.then, name))
				}
				def := fullDef(name)
				if w.def != nil {
					w.def(&def)
				}
				found := verify(t, f.db, def)
				got, ok := find(found, w.code, w.column)
				require.True(t, ok, "not found among\n%s", found)
				assert.Equal(t, w.severity, got.Severity)
				assert.NotEmpty(t, got.Reason)
				assert.Less(t, len(serious(found)), 3, "one fault, and what follows from it:\n%s", found)
				if runnable.MatchString(got.Mend) {
					f.exec(t, got.Mend)
					after := verify(t, f.db, def)
					_, still := find(after, w.code, w.column)
					assert.False(t, still, "after %s\n%s", got.Mend, after)
					assert.LessOrEqual(t, len(serious(after)), len(serious(found)), "the mend made it worse:\n%s", after)
				}
			})
		}
	})
}

func named(edits []string, name string) []string {
	list := make([]string, len(edits))
	for i, e := range edits {
		list[i] = strings.ReplaceAll(e, "%[1]s", name)
	}
	return list
}

func TestVerifyFindsNothingWrongInAGoodTable(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.make(t, fullTable, "good")
		assert.Empty(t, serious(verify(t, f.db, fullDef("good"))), "Full")

		whole := fullDef("good")
		whole.Token, whole.Holder, whole.Lease, whole.LeaseFor = "", "", claim.TimeColumn{}, time.Minute
		assert.Equal(t, []string{"nullable changed"}, serious(verify(t, f.db, whole)), "StatusUpdated")

		step := whole
		step.State.Processing, step.LeaseFor, step.Attempts, step.Crashes, step.LastError = claim.Value{}, 0, "", "", ""
		assert.Empty(t, serious(verify(t, f.db, step)), "Transition")

		f.exec(t, `CREATE TABLE numbers (id INT AUTO_INCREMENT PRIMARY KEY, paid BOOLEAN NOT NULL, u BINARY(16) NOT NULL UNIQUE, due BIGINT NOT NULL, KEY (paid, due))`)
		numbers := claim.Table{Name: "numbers", ID: claim.IDColumn{Name: "id", Kind: claim.IntegerID},
			State: claim.StateColumn{Name: "paid", Pending: claim.Bool(false), Done: claim.Bool(true)}, Due: claim.DueTime{Base: claim.TimeColumn{Name: "due"}}}
		assert.Empty(t, serious(verify(t, f.db, numbers)))
		numbers.ID = claim.IDColumn{Name: "u", Kind: claim.BinaryUUIDID}
		assert.Equal(t, []string{"due-index-missing "}, serious(verify(t, f.db, numbers)), "an index without the id doesn't end with it")
	})
}

func TestVerifyOfTheRecipesTable(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.make(t, recipeTable, "orders")
		f.exec(t, "INSERT INTO orders (order_id, created_at) VALUES ('a', '2026-01-02 03:04:05')")
		state := func() (ddl, row string) {
			var name string
			require.NoError(t, f.db.QueryRow("SHOW CREATE TABLE orders").Scan(&name, &ddl))
			require.NoError(t, f.db.QueryRow("SELECT CONCAT_WS(',', order_id, status, created_at, COALESCE(updated_at, 'null')) FROM orders").Scan(&row))
			return ddl, row
		}
		ddl, row := state()
		found := verify(t, f.db, recipeDef("orders"))
		want := []string{"id-collation order_id", "nullable updated_at", "due-index-missing "}
		if f.mariadb() {
			want = append(want, "id-padded order_id")
		}
		assert.ElementsMatch(t, want, serious(found), "\n%s", found)
		assert.Equal(t, claim.Warning, found.Worst())
		_, ok := find(found, "weaker-retry-undated", "")
		assert.True(t, ok, "the mode's promises end the list")
		ddlAfter, rowAfter := state()
		assert.Equal(t, ddl, ddlAfter)
		assert.Equal(t, row, rowAfter)

		assert.NotContains(t, serious(verify(t, f.db, recipeDef(databaseOf(t, f)+".orders"))), "table-missing ", "with the database's name")
	})
}

func databaseOf(t *testing.T, f fixture) string {
	config, err := mysql.ParseDSN(f.dsn)
	require.NoError(t, err)
	return config.DBName
}

func TestVerifySaysWhyATableCantBeUsedAtAll(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.make(t, recipeTable, "orders")
		f.exec(t, "CREATE VIEW seen AS SELECT * FROM orders")
		f.make(t, recipeTable, "gone")
		f.exec(t, "CREATE VIEW broken AS SELECT * FROM gone")
		f.exec(t, "DROP TABLE gone")
		for name, code := range map[string]string{
			"missing": "table-missing", "no_such_db.orders": "table-missing", "seen": "not-a-table", "broken": "not-a-table",
		} {
			assert.Equal(t, []string{code + " "}, serious(verify(t, f.db, recipeDef(name))), name)
		}
		config, err := mysql.ParseDSN(f.dsn)
		require.NoError(t, err)
		config.DBName = ""
		assert.Equal(t, []string{"table-missing "}, serious(verify(t, open(t, config.FormatDSN(), ""), recipeDef("orders"))), "no database")
	})
}

func TestVerifyNeedsTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	table := newTable(t, open(t, "root:secret@tcp("+l.Addr().String()+")/x", ""), recipeDef("orders"))
	_, err = table.Verify(t.Context())
	var op *net.OpError
	require.True(t, errors.As(err, &op), "%v", err)
	assert.ErrorContains(t, err, "mysqlclaim: verify table orders: ")
	assert.NotContains(t, err.Error(), "secret")
	_, err = table.Suggest(t.Context())
	assert.ErrorContains(t, err, "mysqlclaim: suggest for table orders: ")
}

func TestNewTableRefusesWhatCantWork(t *testing.T) {
	_, err := NewTable(nil, recipeDef("orders"))
	require.ErrorIs(t, err, core.ErrInvalid)
	_, err = NewTable(open(t, "root@tcp(127.0.0.1:1)/x", ""), recipeDef("or`ders"))
	require.ErrorIs(t, err, core.ErrInvalid)
	require.ErrorContains(t, err, "mysqlclaim: new table: ")
}

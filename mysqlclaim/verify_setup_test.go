package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
)

// fullTable is a table in which nothing is to be found; EXACT stands for a
// collation of the server's.
const fullTable = `CREATE TABLE %s (
	id VARCHAR(50) CHARACTER SET utf8mb4 COLLATE EXACT NOT NULL,
	status ENUM('pending','processing','completed','dead') NOT NULL DEFAULT 'pending' COMMENT 'it''s a \\ state',
	queue INT NOT NULL DEFAULT 7,
	due BIGINT NOT NULL,
	token BIGINT NOT NULL DEFAULT 0,
	holder VARCHAR(64) NOT NULL DEFAULT '',
	lease BIGINT NULL,
	attempts INT NOT NULL DEFAULT 0,
	crashes INT NOT NULL DEFAULT 0,
	failure TEXT CHARACTER SET utf8mb4,
	changed DATETIME(3) NULL,
	body BLOB NULL,
	kind VARCHAR(20) NOT NULL DEFAULT 'mail',
	PRIMARY KEY (id),
	KEY sweep (queue, status, due)
) ENGINE=InnoDB`

func fullDef(name string) claim.Table {
	return claim.Table{
		Name: name,
		ID:   claim.IDColumn{Name: "id"},
		State: claim.StateColumn{
			Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("processing"), Done: claim.Text("completed"), Dead: claim.Text("dead"),
		},
		Due:       claim.DueTime{Column: claim.TimeColumn{Name: "due"}},
		Where:     []claim.Condition{{Column: "queue", Equals: claim.Int(7)}},
		Token:     "token",
		Holder:    "holder",
		Lease:     claim.TimeColumn{Name: "lease"},
		Attempts:  "attempts",
		Crashes:   "crashes",
		LastError: "failure",
		Updated:   claim.TimeColumn{Name: "changed", Kind: claim.DateTime, Digits: 3, Zone: time.UTC},
		Payload:   "body",
		Kind:      "kind",
	}
}

// recipeTable is the well-known recipe's, as people have it.
const recipeTable = `CREATE TABLE %s (
	order_id   VARCHAR(50) PRIMARY KEY,
	status     ENUM('pending','processing','cancelled','completed') NOT NULL DEFAULT 'pending',
	created_at DATETIME NOT NULL,
	updated_at DATETIME DEFAULT NULL
)`

func recipeDef(name string) claim.Table {
	return claim.Table{
		Name: name,
		ID:   claim.IDColumn{Name: "order_id"},
		State: claim.StateColumn{
			Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("processing"), Done: claim.Text("cancelled"),
		},
		Due:      claim.DueTime{Base: claim.TimeColumn{Name: "created_at", Kind: claim.DateTime, Zone: time.UTC}, After: 30 * time.Minute},
		Updated:  claim.TimeColumn{Name: "updated_at", Kind: claim.DateTime, Zone: time.UTC},
		LeaseFor: 30 * time.Second,
	}
}

// fixture is a database in which tests make their tables.
type fixture struct {
	backend
	dsn string
	db  *sql.DB
}

func newFixture(t *testing.T, b backend) fixture {
	t.Helper()
	dsn := b.database(t)
	return fixture{b, dsn, open(t, dsn, "")}
}

func (f fixture) mariadb() bool { return f.name == "store:mariadb" }

// make runs a CREATE TABLE, edited by pairs of old and new text.
func (f fixture) make(t *testing.T, ddl, name string, edits ...string) {
	t.Helper()
	ddl = fmt.Sprintf(ddl, name)
	for i := 0; i < len(edits); i += 2 {
		require.Contains(t, ddl, edits[i])
		ddl = strings.ReplaceAll(ddl, edits[i], edits[i+1])
	}
	exact := "utf8mb4_0900_bin"
	if f.mariadb() {
		exact = "utf8mb4_nopad_bin"
	}
	f.exec(t, strings.ReplaceAll(ddl, "EXACT", exact))
}

func (f fixture) exec(t *testing.T, statement string) {
	t.Helper()
	_, err := f.db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

// execLate is exec after the test's end.
func (f fixture) execLate(t *testing.T, statement string) {
	_, err := f.db.ExecContext(context.WithoutCancel(t.Context()), statement)
	require.NoError(t, err, statement)
}

func newTable(t *testing.T, db *sql.DB, def claim.Table) *Table {
	t.Helper()
	table, err := NewTable(db, def)
	require.NoError(t, err)
	return table
}

func verify(t *testing.T, db *sql.DB, def claim.Table) claim.Findings {
	t.Helper()
	found, err := newTable(t, db, def).Verify(t.Context())
	require.NoError(t, err)
	return found
}

// find returns the finding of a code on a column.
func find(found claim.Findings, code, column string) (claim.Finding, bool) {
	for _, f := range found {
		if f.Code == code && strings.EqualFold(f.Column, column) {
			return f, true
		}
	}
	return claim.Finding{}, false
}

// serious are the codes of the faults and warnings.
func serious(found claim.Findings) []string {
	codes := []string{}
	for _, f := range found {
		if f.Severity >= claim.Warning {
			codes = append(codes, f.Code+" "+f.Column)
		}
	}
	return codes
}

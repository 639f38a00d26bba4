package pgclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dueclaim/dueclaim/claim"
)

// Verify reads the table's definition and the session, in one statement, and
// returns what doesn't fit the claim.Table, what weakens a promise, what would be
// quicker otherwise, and what the mode promises; the worst first. It changes
// nothing. A table or column that isn't there is a finding; the error says that
// the catalog could not be read.
//
// Mends are statements to run outside of a transaction: an index is made
// CONCURRENTLY where that can be.
//
// An index serves the sweep when its first columns are those of Where and State,
// in any order, followed by the one that Due is read from. A column that its
// predicate pins to the value in question need not be among them, so that two
// partial indexes, one for each of pending and processing, do as well as one of
// all rows. A predicate that says anything else than column = value, column IN
// (values) and column IS NOT NULL serves nothing.
func (t *Table) Verify(ctx context.Context) (claim.Findings, error) {
	c, err := t.catalog(ctx)
	v := verifier{def: t.def, name: t.name, catalog: c, rel: c.Table}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == codeNoPrivilege {
		v.fault("privilege", "", fmt.Sprintf("the role may not look at the table: %s", pg.Message), "GRANT USAGE on the table's schema to the role")
		err = nil
	} else if err == nil {
		v.session()
		v.table()
	}
	if err != nil {
		return nil, t.fail("verify", err)
	}
	v.findings.Sort()
	return append(v.findings, t.def.Promises()...), nil
}

// verifier holds the findings while they are gathered.
type verifier struct {
	def      claim.Table
	name     string // of the table, quoted
	catalog  catalog
	rel      *relation
	findings claim.Findings
	// twofold has the two statements of a mend that is two.
	twofold map[string][]string
}

func (v *verifier) fault(code, column, reason, mend string) {
	v.findings.Add(claim.Fault, code, column, reason, mend)
}

func (v *verifier) warn(code, column, reason, mend string) {
	v.findings.Add(claim.Warning, code, column, reason, mend)
}

func (v *verifier) advise(code, column, reason, mend string) {
	v.findings.Add(claim.Advice, code, column, reason, mend)
}

// alter is the statement that changes a column.
func (v *verifier) alter(column, change string) string {
	return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s %s", v.name, quote(column), change)
}

// session judges the server and what every connection starts with.
func (v *verifier) session() {
	c := v.catalog
	if c.Server < minServer {
		v.fault("server-version", "", fmt.Sprintf("the server is Postgres %d.%d; want 13 or newer", c.Server/10000, c.Server%10000), "upgrade the server")
	}
	switch {
	case c.Standby:
		v.fault("read-only", "", "the server is a standby: nothing can be claimed", "connect to the primary")
	case c.ReadOnly:
		v.fault("read-only", "", "the session's transactions are read-only: nothing can be claimed", "connect with default_transaction_read_only = off")
	}
	if c.Encoding != "UTF8" {
		v.warn("encoding", "", fmt.Sprintf("the database's encoding is %s: ids, values and errors that it has no characters for make statements fail", c.Encoding), "")
	}
	if c.Commit == "off" {
		v.warn("commit-asynchronous", "", "synchronous_commit is off: after a crash of the server the last claims and settlements may be undone, and tasks run again", "ALTER ROLE "+c.Role+" SET synchronous_commit = on")
	}
	if c.Isolation != "read committed" && c.Isolation != "read uncommitted" {
		v.advise("isolation", "", fmt.Sprintf("default_transaction_isolation is %s: statements that meet a row which was just changed fail with 40001 and are repeated", c.Isolation), "ALTER ROLE "+c.Role+" SET default_transaction_isolation = 'read committed'")
	}
}

// table judges the table as a whole, and then its columns.
func (v *verifier) table() {
	rel := v.rel
	if rel == nil {
		v.fault("table-missing", "", fmt.Sprintf("there is no table %s, spelled exactly so, in the database (without a schema, in its search_path)", v.name), "")
		return
	}
	if rel.Kind != "r" && rel.Kind != "p" {
		kind := map[string]string{"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "c": "a type", "i": "an index", "I": "an index", "t": "a TOAST table"}[rel.Kind]
		v.fault("not-a-table", "", fmt.Sprintf("%s is %s: its rows can't be locked and told apart by an id", v.name, kind), "name the table itself")
		return
	}
	switch rel.Persistence {
	case "u":
		v.warn("unlogged", "", "the table is unlogged: a crash of the server empties it", fmt.Sprintf("ALTER TABLE %s SET LOGGED", v.name))
	case "t":
		v.warn("temporary", "", "the table is temporary: other connections don't see it", "")
	}
	if rel.Children {
		v.warn("inherited", "", "other tables inherit from the table: their rows are claimed too, and no index makes ids unique across the tables", "use partitions of a partitioned table, or a table of its own")
	}
	if rel.Subject {
		v.warn("row-security", "", "row security applies to this role: rows that a policy hides are gone to dueclaim, and rows that it doesn't let change are refused", fmt.Sprintf("ALTER ROLE %s BYPASSRLS, or a policy that lets it see and change all rows", v.catalog.Role))
	}
	v.columns()
	v.id()
	v.dueIndex()
	v.partitions()
	v.writes()
	v.triggers()
}

// partitions warns of a partition key that a claim changes.
func (v *verifier) partitions() {
	for _, p := range v.def.Columns() {
		if c, ok := v.rel.column(p.Name); ok && p.Written && slices.Contains(v.rel.PartitionKey, c.Num) {
			v.warn("partition-by-state", p.Name, "the column is part of the partition key: a change of it moves the row to another partition, and statements that meet the row meanwhile fail", "partition by a column that doesn't change")
		}
	}
}

// writes gives advice on what each claim and heartbeat costs.
func (v *verifier) writes() {
	if v.def.Mode() == claim.Transition {
		return
	}
	for _, name := range []string{v.def.Token, v.def.Holder, v.def.Lease.Name, v.def.Updated.Name} {
		c, ok := v.rel.column(name)
		if !ok {
			continue
		}
		for _, i := range v.rel.Indexes {
			if slices.Contains(i.All, c.Num) && (i.Method != "brin" || v.catalog.Server < 160000) {
				v.advise("lease-indexed", name, fmt.Sprintf("index %s holds the column: each claim and heartbeat writes all indexes of the table", i.Name), fmt.Sprintf("drop the index if no query needs it: DROP INDEX CONCURRENTLY %s", i.Name))
			}
		}
	}
	if fill := v.rel.Fillfactor; v.rel.Kind == "r" && (fill == nil || *fill > 90) {
		v.advise("fillfactor", "", "pages are filled to the brim: claims and heartbeats find no room beside the row for its new version, and write all indexes", fmt.Sprintf("ALTER TABLE %s SET (fillfactor = 70)", v.name))
	}
}

// quote quotes one name of the catalog.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal writes a value into a mend.
func literal(v claim.Value) string {
	switch v.Kind() {
	case claim.IntValue:
		return v.Column()
	case claim.BoolValue:
		return v.String()
	}
	text := "'" + strings.ReplaceAll(v.Text(), "'", "''") + "'"
	if strings.Contains(text, `\`) {
		text = "E" + strings.ReplaceAll(text, `\`, `\\`)
	}
	return text
}

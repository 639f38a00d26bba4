package mysqlclaim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// Verify reads the table's definition, this user's rights and the session's
// settings, and says what doesn't fit the Table, the worst first; what the mode
// promises ends the list. It changes nothing. Other connections of the pool may
// have other settings than the one that it looked at, where something other
// than the DSN sets them.
//
// The error says that the server could not be asked. A table or column that is
// missing is a finding.
func (t *Table) Verify(ctx context.Context) (claim.Findings, error) {
	c, err := t.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("mysqlclaim: verify table %s: %w", t.def.Name, err)
	}
	v := verifier{t: t, c: c}
	v.session()
	if v.table() {
		v.columns()
		v.zones()
		v.indexes()
		v.others()
	}
	v.Sort()
	return append(v.Findings, t.def.Promises()...), nil
}

// verifier compares a Table with what the server says.
type verifier struct {
	claim.Findings
	t *Table
	c *catalog
}

func (v *verifier) fault(code, column, reason, mend string) {
	v.Add(claim.Fault, code, column, reason, mend)
}

func (v *verifier) warn(code, column, reason, mend string) {
	v.Add(claim.Warning, code, column, reason, mend)
}

func (v *verifier) advise(code, column, reason, mend string) {
	v.Add(claim.Advice, code, column, reason, mend)
}

// alter is an ALTER TABLE with these clauses.
func (t *Table) alter(clauses ...string) string {
	return "ALTER TABLE " + t.quoted + " " + strings.Join(clauses, ", ")
}

// table judges the table as such and tells whether there is more to look at.
func (v *verifier) table() bool {
	c := v.c
	switch {
	case c.missing != "":
		v.fault("table-missing", "", c.missing+": nothing works", "")
		return false
	case c.refused != "":
		v.fault("privilege", "", c.refused, v.grant())
		return false
	case c.kind != "BASE TABLE" && c.kind != "SYSTEM VERSIONED":
		v.fault("not-a-table", "", "it is a "+strings.ToLower(c.kind)+": rows of a table are needed, to lock them one by one", "give the Table the name of the table behind it")
		return false
	case c.kind == "SYSTEM VERSIONED":
		v.advise("system-versioned", "", "each claim and heartbeat keeps an old version of its row", "")
	}
	if !strings.EqualFold(c.engine, "InnoDB") {
		v.fault("engine", "", "the engine is "+c.engine+": without InnoDB there are no row locks and no transactions", v.t.alter("ENGINE=InnoDB"))
	}
	return true
}

// session judges what holds for every table.
func (v *verifier) session() {
	s := v.c.session
	const primary = "give the Table a pool to the primary that takes writes"
	if !supported(s["version"]) {
		v.fault("version", "", "the server's version is "+s["version"]+": SKIP LOCKED needs MySQL 8.0 or MariaDB 10.6", "")
	}
	if off(s["autocommit"]) {
		v.fault("autocommit", "", "autocommit is off: nothing would be committed", "remove it from the DSN or init_connect")
	}
	for _, name := range []string{"read_only", "super_read_only", "innodb_read_only"} {
		if s[name] != "" && !off(s[name]) {
			v.fault("read-only", "", name+" is "+s[name]+": a replica, or a fail-over is under way; claims would fail", primary)
			break
		}
	}
	for _, name := range []string{"tx_read_only", "transaction_read_only"} {
		if s[name] != "" && !off(s[name]) {
			v.fault("read-only", "", name+" is "+s[name]+" in this session: claims would fail", "remove it from the DSN or init_connect")
			break
		}
	}
	if v.c.unfit != "" && v.Worst() < claim.Fault {
		v.fault("session", "", "every call would fail: "+v.c.unfit, "")
	}
	if !strings.Contains(s["sql_mode"], "STRICT_") {
		v.warn("sql-mode", "", "sql_mode is not strict: a value that doesn't fit its column, such as a state that an ENUM lacks, is stored as another instead of refused",
			"SET GLOBAL sql_mode = CONCAT_WS(',', NULLIF(@@GLOBAL.sql_mode, ''), 'STRICT_TRANS_TABLES')")
	}
	if s["log_bin"] != "" && !off(s["log_bin"]) && strings.EqualFold(s["binlog_format"], "STATEMENT") {
		v.warn("binlog-statement", "", "binlog_format is STATEMENT: which rows SKIP LOCKED passed over isn't in the log, so replicas drift away; READ COMMITTED is refused",
			"SET GLOBAL binlog_format = 'ROW'")
	}
}

// grant is the statement that gives this user what the Table needs.
func (v *verifier) grant() string {
	at := strings.LastIndexByte(v.c.user, '@')
	if at < 0 {
		return ""
	}
	return "GRANT SELECT, UPDATE ON " + quoteName(v.c.database) + "." + quoteName(v.c.name) +
		" TO " + quoteText(v.c.user[:at]) + "@" + quoteText(v.c.user[at+1:])
}

// others judges what may interfere with an UPDATE, and what this user may do.
func (v *verifier) others() {
	v.triggers()
	v.checks()
	var unread, unwritten []string
	for _, col := range v.t.def.Columns() {
		facts := v.c.column(col.Name)
		if facts == nil {
			continue
		}
		rights := strings.Split(strings.ToLower(facts.privileges), ",")
		if !slices.Contains(rights, "select") {
			unread = append(unread, col.Name)
		}
		if col.Written && !slices.Contains(rights, "update") {
			unwritten = append(unwritten, col.Name)
		}
	}
	for _, r := range []struct {
		right   string
		columns []string
	}{{"SELECT", unread}, {"UPDATE", unwritten}} {
		if len(r.columns) > 0 {
			v.fault("privilege", r.columns[0], "user "+v.c.user+" has no "+r.right+" on "+strings.Join(r.columns, ", "), v.grant())
		}
	}
}

package sqliteclaim

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// verification is one run of Verify.
type verification struct {
	t     claim.Table
	name  string // quoted
	table *Table
	conn  *sql.Conn
	d     definition
	fs    claim.Findings
}

// columns looks at the definitions of the columns that are mapped.
func (v *verification) columns() {
	seen := make(map[string]bool)
	for _, part := range v.t.Columns() {
		c, ok := v.d.column(part.Name)
		if !ok {
			mend := ""
			if _, ours := additions()[part.Role]; ours {
				mend = renamed(v.t, part.Role, part.Name).statement(v.name)
			}
			v.fs.Add(claim.Fault, "column-missing", part.Name, fmt.Sprintf("%s has no column %s (%s)", v.t.Name, part.Name, part.Role), mend)
			continue
		}
		want := v.wants(part)
		if !want.fits(c.declared, v.d.strict) {
			v.fs.Add(claim.Fault, "column-type", c.name,
				fmt.Sprintf("%s: the declared type is %s, which %s; want %s", part.Role, orNone(c.declared), want.spoils, want.names), "")
		}
		if c.generated && part.Written {
			v.fs.Add(claim.Fault, "generated", c.name, fmt.Sprintf("%s: the column is generated, and can't be written", part.Role), "map a column that isn't")
		}
		if !seen[strings.ToLower(c.name)] {
			v.nulls(part, c)
			v.fractions(part, c)
		}
		seen[strings.ToLower(c.name)] = true
	}
	id, ok := v.d.column(v.t.ID.Name)
	if ok && !v.d.unique(id.name) {
		v.fs.Add(claim.Fault, "id-not-unique", id.name, "no unique index on the id alone: several rows with one id would be claimed together",
			"CREATE UNIQUE INDEX "+quote("dueclaim_"+v.t.Name+"_id")+" ON "+v.name+" ("+quote(id.name)+")")
	}
}

// nulls looks at what NULL means in a column.
func (v *verification) nulls(part claim.Column, c column) {
	alter := "ALTER TABLE " + v.name + " ALTER COLUMN " + quote(c.name)
	switch part.Role {
	case "Lease":
		if c.notNull {
			v.fs.Add(claim.Fault, "lease-not-null", c.name, "Lease can't be NULL, which stands for no lease: no task could be settled", alter+" DROP NOT NULL")
		}
		return
	case "Token", "Holder", "Attempts", "Crashes", "LastError":
		if c.notNull && !c.hasDefault && !c.generated {
			v.fs.Add(claim.Warning, "not-null-without-default", c.name, part.Role+": NOT NULL without a DEFAULT: an INSERT that doesn't name the column fails", alter+" DROP NOT NULL")
		}
		return
	}
	if c.notNull || v.d.rowid(c.name) {
		return
	}
	severity, code, means := claim.Warning, "nullable", ""
	switch part.Role {
	case "ID":
		severity, code, means = claim.Fault, "id-nullable", "such a row is never claimed, and several may have it"
		if c.key > 0 {
			severity, means = claim.Advice, "SQLite lets it into this PRIMARY KEY; such a row is never claimed"
		}
	case "State":
		means = "such a row is in no state, and never claimed"
	case "Due.Column", "Due.Base":
		means = "such a row is never due"
	case "Updated":
		if v.t.Mode() == claim.StatusUpdated {
			means = "a row that other statements put into the processing state without it is left alone, for ever"
		}
	}
	if means != "" {
		v.fs.Add(severity, code, c.name, part.Role+" may be NULL: "+means, alter+" SET NOT NULL")
	}
}

// fractions looks at what a time column can tell apart.
func (v *verification) fractions(part claim.Column, c column) {
	if part.Time == nil || part.Time.Step() < time.Second {
		return
	}
	switch part.Role {
	case "Due.Column", "Due.Base":
		v.fs.Add(claim.Advice, "time-without-fraction", c.name, part.Role+" has whole seconds: a task runs up to a second late", "")
	case "Lease", "Planned", "Updated":
		v.fs.Add(claim.Advice, "time-without-fraction", c.name, part.Role+" has whole seconds", "")
	}
}

// want is what a part asks of its column's declared type.
type want struct {
	names  string
	spoils string
	fits   func(declared string, strict bool) bool
}

var (
	integer = want{"INTEGER", "doesn't keep integers as they are", func(declared string, strict bool) bool {
		a := affinity(declared, strict)
		return a == "INTEGER" || !strict && (a == "NUMERIC" || a == "BLOB") || a == "ANY"
	}}
	text = want{"TEXT", "doesn't keep text that looks like a number as it is", func(declared string, strict bool) bool {
		a := affinity(declared, strict)
		return a == "TEXT" || !strict && a == "BLOB" || a == "ANY"
	}}
	// words never look like a number, so any type keeps them; but one that is
	// declared a number will hold numbers.
	words = want{"TEXT", "is for numbers", func(declared string, strict bool) bool {
		a := affinity(declared, strict)
		return a == "TEXT" || !strict && (a == "BLOB" || a == "NUMERIC") || a == "ANY"
	}}
	blob = want{"BLOB", "doesn't take bytes", func(declared string, strict bool) bool {
		a := affinity(declared, strict)
		return !strict && a != "INTEGER" && a != "REAL" || a == "BLOB" || a == "ANY"
	}}
	anything = want{"any type", "", func(string, bool) bool { return true }}
)

// wants says what the part asks for.
func (v *verification) wants(part claim.Column) want {
	switch part.Role {
	case "ID":
		switch v.t.ID.Kind {
		case claim.IntegerID:
			return integer
		case claim.UUIDID:
			return words
		case claim.BinaryUUIDID:
			return blob
		}
		return text
	case "State":
		return wantValues(v.t.State.Pending, v.t.State.Processing, v.t.State.Done, v.t.State.Dead)
	case "Token", "Attempts", "Crashes":
		return integer
	case "Holder", "LastError", "Kind":
		return text
	case "Payload":
		return anything
	}
	if part.Time != nil {
		if part.Time.Kind == claim.DateTime {
			return words
		}
		return integer
	}
	for i, c := range v.t.Where {
		if part.Role == fmt.Sprintf("Where[%d]", i) && !c.IsNull {
			return wantValues(c.Equals)
		}
	}
	return anything
}

// number is what SQLite turns into a number in a column for numbers.
var number = regexp.MustCompile(`^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$`)

func wantValues(values ...claim.Value) want {
	w := words
	for _, value := range values {
		switch {
		case value.Kind() == claim.IntValue || value.Kind() == claim.BoolValue:
			return integer
		case number.MatchString(value.Text()):
			w = text
		}
	}
	return w
}

// affinity is that of a declared type: SQLite's rules, https://sqlite.org/datatype3.html
// section 3.1, and ANY in STRICT tables.
func affinity(declared string, strict bool) string {
	d := strings.ToUpper(declared)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(d, p) {
				return true
			}
		}
		return false
	}
	switch {
	case strict && d == "ANY":
		return "ANY"
	case has("INT"):
		return "INTEGER"
	case has("CHAR", "CLOB", "TEXT"):
		return "TEXT"
	case d == "" || has("BLOB"):
		return "BLOB"
	case has("REAL", "FLOA", "DOUB"):
		return "REAL"
	default:
		return "NUMERIC"
	}
}

func orNone(declared string) string {
	if declared == "" {
		return "none"
	}
	return declared
}

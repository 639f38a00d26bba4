package pgclaim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Names of the columns that Suggest adds where none is mapped.
const (
	tokenColumn    = "dueclaim_token"
	holderColumn   = "dueclaim_holder"
	leaseColumn    = "dueclaim_lease"
	attemptsColumn = "dueclaim_attempts"
	crashesColumn  = "dueclaim_crashes"
	errorColumn    = "dueclaim_error"
)

// processing is the state's value that is suggested to a table without one.
const processing = "processing"

// Suggest reads the definitions and returns the statements that lead from the
// table as it is to mode claim.Full: columns that are missing, values that an enum
// or a CHECK constraint doesn't allow, the sweep's index. It changes nothing. Run
// them in their order, each outside of a transaction, and map the columns; your own
// statements go on as before. Nothing is returned for what is there. It fails with
// core.ErrInvalid where no statement leads there: the table is missing, or its
// state is boolean.
func (t *Table) Suggest(ctx context.Context) ([]string, error) {
	c, err := t.catalog(ctx)
	if err != nil {
		return nil, t.fail("suggest", err)
	}
	full := fullOf(t.def)
	v := verifier{def: full, name: t.name, catalog: c, rel: c.Table}
	switch {
	case c.Table == nil:
		return nil, t.fail("suggest", fmt.Errorf("%w: there is no table %s", core.ErrInvalid, t.name))
	case c.Table.Kind != "r" && c.Table.Kind != "p":
		return nil, t.fail("suggest", fmt.Errorf("%w: %s is not a table", core.ErrInvalid, t.name))
	case full.State.Pending.Kind() == claim.BoolValue:
		return nil, t.fail("suggest", fmt.Errorf("%w: State is boolean; mode Full needs a third value: want text, an enum or an integer", core.ErrInvalid))
	}
	var adds []string
	for _, p := range full.Columns() {
		if _, ok := c.Table.column(p.Name); ok {
			continue
		}
		add := v.added(p.Role, p.Name, p.Time)
		if add == "" {
			return nil, t.fail("suggest", fmt.Errorf("%w: the table has no column %s (%s)", core.ErrInvalid, quote(p.Name), p.Role))
		}
		adds = append(adds, add)
	}
	var all []string
	if len(adds) > 0 {
		all = append(all, fmt.Sprintf("ALTER TABLE %s %s", t.name, strings.Join(adds, ", ")))
	}
	v.table()
	for _, f := range v.findings {
		statements := cmp.Or(strings.Join(v.twofold[f.Mend], "\x00"), f.Mend)
		for statement := range strings.SplitSeq(statements, "\x00") {
			if slices.Contains(inTheWay, f.Code) && isStatement(statement) && !slices.Contains(all, statement) {
				all = append(all, statement)
			}
		}
	}
	return all, nil
}

// inTheWay are the findings whose mends belong to the way to mode Full.
var inTheWay = []string{
	"enum-lacks-value", "check-lacks-value", "text-too-short", "id-nullable", "id-not-unique", "lease-not-null", "due-index-missing",
}

// isStatement tells a mend that is SQL from advice in words.
func isStatement(mend string) bool {
	return strings.HasPrefix(mend, "ALTER ") || strings.HasPrefix(mend, "CREATE ")
}

// fullOf is def with what mode Full needs beside it.
func fullOf(def claim.Table) claim.Table {
	def.Token = cmp.Or(def.Token, tokenColumn)
	def.Holder = cmp.Or(def.Holder, holderColumn)
	if def.Lease.Name == "" {
		def.Lease = claim.TimeColumn{Name: leaseColumn, Kind: claim.UnixMilli}
	}
	def.Attempts = cmp.Or(def.Attempts, attemptsColumn)
	def.Crashes = cmp.Or(def.Crashes, crashesColumn)
	def.LastError = cmp.Or(def.LastError, errorColumn)
	if def.State.Processing.IsZero() && def.State.Pending.Kind() == claim.TextValue {
		def.State.Processing = claim.Text(processing)
	}
	return def
}

// added is the clause of ALTER TABLE that adds the column of a part; empty for a
// part that only the user can know.
func (v *verifier) added(role, name string, time *claim.TimeColumn) string {
	kind := ""
	switch role {
	case "Token":
		kind = "bigint NOT NULL DEFAULT 0"
	case "Holder":
		kind = `text COLLATE "C" NOT NULL DEFAULT ''`
	case "Attempts", "Crashes":
		kind = "integer NOT NULL DEFAULT 0"
	case "LastError":
		kind = "text"
	case "Lease", "Updated":
		kind = map[claim.TimeKind]string{
			claim.UnixMilli: "bigint", claim.UnixSecond: "bigint",
			claim.DateTime:  fmt.Sprintf("timestamp(%d)", time.Digits),
			claim.Timestamp: fmt.Sprintf("timestamptz(%d)", time.Digits),
		}[time.Kind]
	default:
		return ""
	}
	return fmt.Sprintf("ADD COLUMN %s %s", quote(name), kind)
}

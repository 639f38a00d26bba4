package mysqlclaim

import (
	"context"
	"fmt"

	"github.com/dueclaim/dueclaim/claim"
)

// Suggest returns the statements that lead from the table as it is to mode Full,
// to be read and run by people: the columns that it lacks, by the names that are
// mapped or else by names that begin with dueclaim_, the values that an ENUM
// lacks, and the sweep's index. None where nothing is missing. It changes
// nothing; afterwards map the new columns. An INSERT that doesn't know them goes
// on working.
func (t *Table) Suggest(ctx context.Context) ([]string, error) {
	c, err := t.look(ctx)
	if err == nil && c.missing+c.refused != "" {
		err = fmt.Errorf("%s%s", c.missing, c.refused)
	}
	if err != nil {
		return nil, fmt.Errorf("mysqlclaim: suggest for table %s: %w", t.def.Name, err)
	}
	v := verifier{t: t, c: c}
	var clauses []string
	values := v.states()
	if t.def.State.Processing.IsZero() && t.def.State.Pending.Kind() == claim.TextValue {
		values = append(values, claim.Text("processing"))
	}
	if f := c.column(t.def.State.Name); f != nil {
		if lacking := lacking(*f, values); len(lacking) > 0 {
			clauses = append(clauses, f.withMembers(lacking).modify())
		}
	}
	for _, col := range t.fullColumns() {
		if def := ownDefinition(col); def != "" && c.column(col.Name) == nil {
			clauses = append(clauses, "ADD COLUMN "+quoteName(col.Name)+" "+def)
		}
	}
	var statements []string
	if len(clauses) > 0 {
		statements = append(statements, t.alter(clauses...))
	}
	if _, ok := c.dueIndex(t.def); !ok && v.sweepable() {
		statements = append(statements, t.createDueIndex(c))
	}
	return statements, nil
}

// fullColumns are the columns of mode Full: the mapped ones, and names for those
// that are not.
func (t *Table) fullColumns() []claim.Column {
	full := t.def
	name := func(field *string, name string) {
		if *field == "" {
			*field = name
		}
	}
	name(&full.Token, "dueclaim_token")
	name(&full.Holder, "dueclaim_holder")
	name(&full.Lease.Name, "dueclaim_lease")
	name(&full.Attempts, "dueclaim_attempts")
	name(&full.Crashes, "dueclaim_crashes")
	name(&full.LastError, "dueclaim_error")
	return full.Columns()
}

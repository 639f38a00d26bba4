package sqliteclaim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// collations finds out what the collations of the id and the state take for the
// same. The file's schema has them in the text of the CREATE TABLE only; but a
// UNION compares as its first SELECT's column does.
func (v *verification) collations(ctx context.Context) error {
	same := func(column, pair string) (bool, error) {
		var n int
		err := v.conn.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT "+quote(column)+" FROM "+v.name+
			" WHERE 0 UNION SELECT value FROM json_each(?1))", pair).Scan(&n)
		return n == 1, err
	}
	const cases, accents, spaces = `["a","A"]`, `["e","é"]`, `["a","a "]`
	if _, ok := v.d.column(v.t.ID.Name); ok && (v.t.ID.Kind == claim.TextID || v.t.ID.Kind == claim.UUIDID) {
		for _, pair := range []string{cases, accents} {
			if yes, err := same(v.t.ID.Name, pair); err != nil {
				return err
			} else if yes {
				v.fs.Add(claim.Warning, "id-collation", v.t.ID.Name, fmt.Sprintf("the id's collation takes %s for one: no wrong row is claimed, but an entry of the index that is spelled otherwise than the row finds none", pair),
					"rebuild the table with COLLATE BINARY on the column")
				break
			}
		}
		if yes, err := same(v.t.ID.Name, spaces); err != nil {
			return err
		} else if yes {
			v.fs.Add(claim.Warning, "id-padded", v.t.ID.Name, "the id's collation ignores spaces at the end; ids with such spaces can't be tasks", "rebuild the table with COLLATE BINARY on the column")
		}
	}
	if _, ok := v.d.column(v.t.State.Name); ok && v.t.State.Pending.Kind() == claim.TextValue {
		if yes, err := same(v.t.State.Name, cases); err != nil {
			return err
		} else if yes {
			v.fs.Add(claim.Warning, "state-collation", v.t.State.Name, "the state's collation ignores case: a row whose state is spelled otherwise counts too", "")
		}
	}
	return nil
}

// lookup asks the planner whether it finds a row by its id without reading all: an
// index of another collation than the column's is of no use to it.
func (v *verification) lookup(ctx context.Context) error {
	c, ok := v.d.column(v.t.ID.Name)
	if !ok || !v.d.unique(c.name) {
		return nil
	}
	scans := false
	err := each(ctx, v.conn, "EXPLAIN QUERY PLAN SELECT 1 FROM "+v.name+" WHERE "+quote(c.name)+" = 1", func(scan scanner) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		scans = scans || strings.HasPrefix(detail, "SCAN ")
		return err
	})
	if scans {
		v.fs.Add(claim.Warning, "id-scan", c.name, "the unique index on the id has another collation than the column: each claim reads the whole table",
			"CREATE UNIQUE INDEX "+quote("dueclaim_"+v.t.Name+"_id")+" ON "+v.name+" ("+quote(c.name)+")")
	}
	return err
}

// updateTriggers finds the triggers that run when dueclaim writes its columns, also
// those of the connection (TEMP): a statement's program names them.
func (v *verification) updateTriggers(ctx context.Context) error {
	var sets []string
	for _, part := range v.t.Columns() {
		if c, ok := v.d.column(part.Name); ok && part.Written && !c.generated {
			sets = append(sets, quote(c.name)+" = "+quote(c.name))
		}
	}
	if len(sets) == 0 {
		return nil
	}
	var names []string
	err := each(ctx, v.conn, "EXPLAIN UPDATE "+v.name+" SET "+strings.Join(sets, ", "), func(scan scanner) error {
		var at, p1, p2, p3, p5 int
		var opcode string
		var p4, comment *string
		if err := scan(&at, &opcode, &p1, &p2, &p3, &p4, &p5, &comment); err != nil {
			return err
		}
		if opcode == "Init" && p4 != nil {
			if name, ok := strings.CutPrefix(*p4, "-- TRIGGER "); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := v.trigger(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) trigger(ctx context.Context, name string) error {
	if v.t.Mode() == claim.Transition { // the step is one UPDATE, like the user's own
		v.fs.Add(claim.Advice, "trigger", "", "the step from pending to done runs trigger "+name, "")
		return nil
	}
	var source string
	err := each(ctx, v.conn, "SELECT coalesce(sql, '') FROM (SELECT * FROM main.sqlite_schema UNION ALL SELECT * FROM sqlite_temp_schema) WHERE type = 'trigger' AND name = ?1",
		func(scan scanner) error { return scan(&source) }, name)
	if err != nil {
		return err
	}
	broken := false
	for _, fence := range sqltable.Fences(v.t) {
		if sqltable.TriggerTouch(source, v.t.Name, fence) == sqltable.Writes {
			broken = true
			v.fs.Add(claim.Fault, "trigger", fence, fmt.Sprintf("trigger %s sets it in each UPDATE, and what a claim writes there is what proves a grant: no row could be claimed and completed", name),
				fmt.Sprintf("have it leave alone what the statement itself wrote (WHEN new.%[1]s IS old.%[1]s), or leave State.Processing out (mode Transition)", fence))
		}
	}
	if !broken {
		v.fs.Add(claim.Warning, "trigger", "", fmt.Sprintf("claims, heartbeats and settlements run trigger %s. One that raises an error or ignores the row makes them fail; with one that changes a mapped column%s no row can be claimed",
			name, updatedHint(v.t)), "see what it does; UPDATE OF with the columns that it is about keeps it from running")
	}
	return nil
}

func updatedHint(t claim.Table) string {
	if t.Mode() == claim.StatusUpdated {
		return ", such as " + t.Updated.Name + ","
	}
	return ""
}

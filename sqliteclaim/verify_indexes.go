package sqliteclaim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// index looks at the indexes.
func (v *verification) index(ctx context.Context, q reader) error {
	equal, due, id := sweepColumns(v.t)
	for _, name := range append(equal, due, id) {
		if _, ok := v.d.column(name); !ok && name != "" {
			return nil // it couldn't be made
		}
	}
	if served, err := v.sweepServed(ctx, q); err != nil {
		return err
	} else if !served {
		v.fs.Add(claim.Warning, "due-index-missing", due, "no index serves the sweep: each one reads all rows of a state, or the whole table, once a second", sweepStatement(v.t))
	}
	busy := map[string]bool{}
	for _, name := range []string{v.t.Token, v.t.Holder, v.t.Lease.Name, v.t.Updated.Name} {
		busy[strings.ToLower(name)] = name != ""
	}
	for _, i := range v.d.indexes {
		for _, name := range i.columns {
			if busy[name] {
				v.fs.Add(claim.Advice, "lease-indexed", name, fmt.Sprintf("index %s holds a column that each claim and heartbeat writes: it is written with it", i.name), "")
			}
		}
	}
	return nil
}

// sweepServed tells whether an index serves the sweep: by its columns, or partial
// ones do, because the planner says so. (One that knows from ANALYZE that the table
// has a few rows only may do without.)
func (v *verification) sweepServed(ctx context.Context, q reader) (bool, error) {
	if v.d.sweepIndex(v.t) {
		return true, nil
	}
	p := planned{t: v.table, d: v.d, q: q}
	now := time.Unix(0, 0)
	_, err := v.table.engine.Waiting(ctx, &p, now, core.Entry{}, now, 1)
	return p.served, err
}

// planned is a Conn that asks how a sweep would be run, and doesn't run it.
type planned struct {
	t      *Table
	d      definition
	q      reader
	served bool
}

// Query implements sqltable.Conn.
func (p *planned) Query(ctx context.Context, q sqltable.Query, _ func(sqltable.Row)) error {
	s := p.t.query(q)
	p.served = true
	parts := map[int]string{} // what a step of the plan is part of
	err := each(ctx, p.q, "EXPLAIN QUERY PLAN "+s.text.String(), func(scan scanner) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		parts[id] = detail
		if branch := parts[parent]; (branch == "CO-ROUTINE b0" || branch == "CO-ROUTINE b1") && !p.alongPartial(detail) {
			p.served = false // a scan, or a sort of what was found
		}
		return err
	}, s.arguments(nil)...)
	return err
}

// alongPartial tells whether a step of a plan goes along a partial index. One of all
// rows that the planner likes may be one of due times alone, full of finished rows.
func (p *planned) alongPartial(detail string) bool {
	if detail == "USE TEMP B-TREE FOR LAST TERM OF ORDER BY" { // the ids of one due time
		return true
	}
	_, using, ok := strings.Cut(detail, "SEARCH t USING ")
	for _, i := range p.d.indexes {
		if ok && i.partial && strings.Contains(using, "INDEX "+i.name+" (") {
			return true
		}
	}
	return false
}

// Change implements sqltable.Conn; a sweep makes none.
func (p *planned) Change(context.Context, sqltable.Change) (sqltable.Changes, error) {
	return sqltable.Changes{}, nil
}

package mysqlclaim

import (
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// idIndex returns the name of the unique index of the id column alone: the
// primary key if it is that. Every statement finds its rows by it.
func (c *catalog) idIndex(id string) (name string, ok bool) {
	for _, x := range c.indexes {
		if x.unique && x.usable && len(x.parts) == 1 && strings.EqualFold(x.parts[0].column, id) && !x.parts[0].prefix {
			if name = x.name; name == "PRIMARY" {
				return name, true
			}
			ok = true
		}
	}
	return name, ok
}

// dueIndex returns the name of an index that gives the sweep its rows in order:
// the state and fixed columns in any order, the due time, the id.
func (c *catalog) dueIndex(def claim.Table) (name string, ok bool) {
	i := slices.IndexFunc(c.indexes, func(x index) bool { return x.usable && x.sweeps(c, def) })
	if i < 0 {
		return "", false
	}
	return c.indexes[i].name, true
}

func (x index) sweeps(c *catalog, def claim.Table) bool {
	fixed := map[string]bool{strings.ToLower(def.State.Name): true}
	for _, w := range def.Where {
		fixed[strings.ToLower(w.Column)] = true
	}
	parts, states := x.parts, 0
	for len(parts) > 0 && fixed[parts[0].column] {
		if strings.EqualFold(parts[0].column, def.State.Name) {
			states++
		}
		parts = parts[1:]
	}
	if states == 0 {
		return false
	}
	due, _ := def.Due.Source()
	if len(parts) == 0 || !strings.EqualFold(parts[0].column, due.Name) || parts[0].prefix {
		return false
	}
	if parts = parts[1:]; len(parts) > 0 {
		return strings.EqualFold(parts[0].column, def.ID.Name)
	}
	// Every index of InnoDB ends with the primary key.
	name, ok := c.idIndex(def.ID.Name)
	return ok && name == "PRIMARY"
}

// createDueIndex is the statement that makes the sweep's index.
func (t *Table) createDueIndex(c *catalog) string {
	var parts []string
	add := func(name string) {
		p := quoteName(name)
		if f := c.column(name); f != nil && (strings.HasSuffix(f.data, "text") || strings.HasSuffix(f.data, "blob")) {
			p += "(64)"
		}
		if !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	for _, w := range t.def.Where {
		add(w.Column)
	}
	add(t.def.State.Name)
	due, _ := t.def.Due.Source()
	add(due.Name)
	add(t.def.ID.Name)
	return "CREATE INDEX " + quoteName(c.free(dueIndex)) + " ON " + t.quoted + " (" + strings.Join(parts, ", ") + ")"
}

// free returns a name that no index of the table has.
func (c *catalog) free(name string) string {
	for slices.ContainsFunc(c.indexes, func(x index) bool { return strings.EqualFold(x.name, name) }) {
		name += "_2"
	}
	return name
}

// indexes judges the table's indexes.
func (v *verifier) indexes() {
	def, c := v.t.def, v.c
	if _, ok := c.idIndex(def.ID.Name); !ok && c.column(def.ID.Name) != nil {
		v.fault("id-not-unique", def.ID.Name, "no unique, visible index has this column alone: an id could be that of several rows, and finding one would read the whole table",
			v.t.alter("ADD UNIQUE KEY "+quoteName(c.free("dueclaim_id"))+" ("+quoteName(def.ID.Name)+")"))
	}
	if _, ok := c.dueIndex(def); !ok && v.sweepable() {
		v.warn("due-index-missing", "", "no index gives the sweep its rows in order: each one, every second, reads and sorts the table", v.t.createDueIndex(c))
	}
	hot := []string{def.Lease.Name, def.Token, def.Holder, def.Updated.Name, def.Attempts, def.Crashes}
	for _, x := range c.indexes {
		for _, p := range x.parts {
			if slices.ContainsFunc(hot, func(name string) bool { return name != "" && strings.EqualFold(name, p.column) }) {
				v.advise("lease-indexed", p.column, "index "+x.name+" holds it: claims and heartbeats have to write that index too",
					v.t.alter("DROP INDEX "+quoteName(x.name)))
			}
		}
	}
}

// sweepable tells whether the columns of the sweep's index are there at all.
func (v *verifier) sweepable() bool {
	due, _ := v.t.def.Due.Source()
	names := []string{v.t.def.ID.Name, v.t.def.State.Name, due.Name}
	for _, w := range v.t.def.Where {
		names = append(names, w.Column)
	}
	return !slices.ContainsFunc(names, func(name string) bool { return v.c.column(name) == nil })
}

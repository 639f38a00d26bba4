package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
	"github.com/dueclaim/dueclaim/internal/tabletest"
)

// recorder keeps the statements that the engine has a Conn run, and runs them
// through the one below, if there is one.
type recorder struct {
	t     *Table
	c     *catalog
	below sqltable.Conn
	all   []string
	errs  []error
}

func (r *recorder) keep(text string, err error) {
	r.all = append(r.all, text)
	r.errs = append(r.errs, err)
}

func (r *recorder) Query(ctx context.Context, q sqltable.Query, row func(sqltable.Row)) error {
	r.keep(r.t.selection(r.c, q, queryMode{}))
	if r.below == nil {
		return nil
	}
	return r.below.Query(ctx, q, row)
}

func (r *recorder) Change(ctx context.Context, ch sqltable.Change) (sqltable.Changes, error) {
	if len(ch.Items) == 1 || ch.Exact {
		for i := range ch.Items {
			s := r.t.changeOne(r.c, ch, &ch.Items[i], changeMode{skip: " SKIP LOCKED"})
			r.keep(s.String(), s.err)
		}
	}
	if !ch.Exact {
		s := r.t.changeAll(r.c, ch, changeMode{skip: " SKIP LOCKED"})
		r.keep(s.String(), s.err)
	}
	if r.below == nil {
		return sqltable.Changes{Changed: make([]bool, len(ch.Items))}, nil
	}
	return r.below.Change(ctx, ch)
}

func TestTablesRowsAreFoundByTheirIDsAndSweptAlongTheIndex(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for _, config := range tabletest.Configs(claim.TimeColumn{Kind: claim.DateTime, Digits: 3, Zone: time.UTC}) {
			t.Run(config.Name, func(t *testing.T) {
				t.Attr("dueclaim.backend", b.name)
				x := newShops(t, b, config, "")
				h := x.users(t, nil, "a", plainTable)
				table, ctx := h.Claimer.(*Table), t.Context()
				list := someTasks("n", 2000)
				for i := range list {
					list[i].Due = at(i / 10)
				}
				h.Put(t, list...)
				x.exec(t, "UPDATE "+h.Name+" SET status = 'completed' WHERE order_id > 'n-01000'") // tempts an optimizer
				x.exec(t, "ALTER TABLE "+h.Name+" FORCE")                                          // old versions of index entries count in estimates until they are purged
				x.exec(t, "ANALYZE TABLE "+h.Name)
				found, err := table.Verify(ctx)
				require.NoError(t, err)
				assert.Less(t, found.Worst(), claim.Fault, "\n%s", found)
				assert.NotContains(t, serious(found), "due-index-missing ")
				c, err := table.facts(ctx, x.db)
				require.NoError(t, err)
				byID := &recorder{t: table, c: c, below: table.pooled()}
				some := idsOf(list[:200])
				claimed, err := table.engine.Claim(ctx, byID, some, leaseOf("h", at(5000)))
				require.NoError(t, err)
				var grants []core.Grant
				var settlements []core.Settlement
				for _, c := range claimed[:100] {
					require.Equal(t, core.Granted, c.Verdict)
					grants = append(grants, c.Grant)
					settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(60_000), Err: "e"})
				}
				require.NoError(t, table.engine.Extend(ctx, byID, grants, at(40_000)))
				require.NoError(t, table.engine.Settle(ctx, byID, at(5001), settlements))
				seen := map[string]bool{}
				for _, query := range byID.all {
					one := strings.Contains(query, " LIMIT 1 ")
					if one && seen[query[:40]] {
						continue // an item like the others
					}
					seen[query[:40]] = one
					for _, p := range explain(t, b, &Store{db: x.db}, new(text).sql(query)) {
						if p.table == "t" || p.table == "o" {
							assert.Equal(t, "order_id", p.key, "%v of %.300s", p, query)
							assert.Contains(t, []string{"const", "eq_ref", "range", "ref"}, p.access, "%v of %.300s", p, query)
						}
					}
				}

				sweeps := &recorder{t: table, c: c, below: table.pooled()}
				for _, after := range []core.Entry{{}, {ID: list[700].ID, Due: list[700].Due}} {
					_, err := table.engine.Waiting(ctx, sweeps, at(5002), after, at(5000), 50)
					require.NoError(t, err)
				}
				session, err := x.db.Conn(ctx)
				require.NoError(t, err)
				defer session.Close()
				for _, query := range sweeps.all {
					for _, p := range explain(t, b, &Store{db: x.db}, new(text).sql(query)) {
						if p.table == "t" {
							assert.Equal(t, "sweep", p.key, "%v of %s", p, query)
							assert.Contains(t, []string{"range", "ref"}, p.access, "%v of %s", p, query)
							assert.NotContains(t, p.extra, "filesort", "%v of %s", p, query)
						}
					}
					before := rowsRead(t, session)
					require.NoError(t, each(ctx, session, query, nil, func(*sql.Rows) error { return nil }))
					assert.Less(t, rowsRead(t, session)-before, 800, "50 that wait of some 900, 100 held at most, each copied twice: %s", query)
				}
			})
		}
	})
}

// FuzzTableStatements: whatever names and values are, each statement stays what
// it is.
func FuzzTableStatements(f *testing.F) {
	f.Add("orders", "order_id", "status", "pending", `it's "done"\`, "a'b", "h", byte(0))
	f.Add("shop.Orders", "select", "from", "_x'1'", "'; DROP TABLE orders; --", "`a`", "\\", byte(1))
	f.Add(strings.Repeat("x", 63), strings.Repeat("y", 60), "ünicode", "\x00", "\xff", "日本", "'", byte(2))
	f.Add("a$b", "_", "o", "Ä", "/* */", "ü", "--", byte(3))
	f.Fuzz(func(t *testing.T, name, id, column, pending, done, task, holder string, variant byte) {
		charset := []string{"utf8mb4", "latin1", "cp1251", ""}[variant%4]
		want, err := fuzzStatements(t.Context(), charset, fuzzed("orders", "order_id", "status", "pending", "done"), "1", "h")
		require.NoError(t, err)
		odd := fuzzed(name, id, column, pending, done)
		if odd.Check() != nil || callNamed(holder).Check() != nil {
			return
		}
		if odd.ID.Kind.Check(core.ID(task)) != nil {
			task = "1" // a malformed one is not sent
		}
		got, err := fuzzStatements(t.Context(), charset, odd, core.ID(task), holder)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, shapeOf(t, want[i]), shapeOf(t, got[i]))
		}
	})
}

// shapeOf takes all forms of a string for one, and a name with a database's for
// one without.
func shapeOf(t *testing.T, text string) string {
	shape, err := tabletest.Shape(text, '`', false)
	require.NoError(t, err, text)
	for _, same := range []struct{ form, plain string }{
		{"id . id AS", "id AS"}, {"_utf8mb4 val", "val"},
		{"CONVERT ( val USING latin1 )", "val"}, {"CONVERT ( val USING cp1251 )", "val"}, {"COLLATE some_ci", ""}, {"  ", " "}, {"NULL", "val"},
	} {
		shape = strings.ReplaceAll(shape, same.form, same.plain)
	}
	return shape
}

func fuzzed(name, id, column, pending, done string) claim.Table {
	def := claim.Table{
		Name: name, ID: claim.IDColumn{Name: id},
		State: claim.StateColumn{Name: column, Pending: claim.Text(pending), Processing: claim.Text("p"), Done: claim.Text(done)},
		Due:   claim.DueTime{Column: claim.TimeColumn{Name: column + "_", Kind: claim.Timestamp}},
		Where: []claim.Condition{{Column: id + "_", Equals: claim.Text(done)}},
		Token: "t1", Holder: "t2", Lease: claim.TimeColumn{Name: "t3", Kind: claim.DateTime, Digits: 3, Zone: time.UTC}, LastError: "t4",
	}
	return def
}

func fuzzStatements(ctx context.Context, charset string, def claim.Table, id core.ID, holder string) ([]string, error) {
	c := newCatalog()
	for _, col := range def.Columns() {
		f := column{name: col.Name, charset: charset, collation: "some_ci"}
		c.columns = append(c.columns, f)
	}
	c.indexes = []index{{name: "uni", unique: true, usable: true, parts: []part{{column: strings.ToLower(def.ID.Name)}}}}
	table := &Table{def: def, quoted: claim.QuoteTable(def.Name, '`'), engine: sqltable.New(def, sqltable.Limits{Rows: 500, Bytes: 1 << 20})}
	r := &recorder{t: table, c: c}
	_, _ = table.engine.Claim(ctx, r, []core.ID{id}, leaseOf(holder, base))
	g := core.Grant{ID: id, Token: 1, Holder: holder}
	_ = table.engine.Extend(ctx, r, []core.Grant{g}, at(1))
	for _, outcome := range []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released} {
		_ = table.engine.Settle(ctx, r, at(1), []core.Settlement{{Grant: g, Outcome: outcome, Due: at(2), Err: holder + string(id)}})
	}
	_, _ = table.engine.Waiting(ctx, r, at(1), core.Entry{ID: id, Due: at(1)}, at(2000), 10)
	for i, err := range r.errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.all[i], err)
		}
	}
	return r.all, nil
}

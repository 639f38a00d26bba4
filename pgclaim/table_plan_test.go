package pgclaim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/sqltable"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// recorder keeps the statements that the engine has a connection run.
type recorder struct {
	tableConn
	all []planned
}

func (r *recorder) Query(ctx context.Context, q sqltable.Query, row func(sqltable.Row)) error {
	sql, args := r.table.query(q)
	r.all = append(r.all, planned{"query", sql, args})
	return r.tableConn.Query(ctx, q, row)
}

func (r *recorder) Change(ctx context.Context, c sqltable.Change) (sqltable.Changes, error) {
	sql, args := r.table.change(c, r.waits)
	r.all = append(r.all, planned{"change", sql, args})
	return r.tableConn.Change(ctx, c)
}

func TestTablesRowsAreLookedUpByTheirIDsWhateverTheStatisticsSay(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	url := testserver.Postgres(t)
	n := int64(0)
	for name, prepare := range map[string]struct{ before, after string }{
		"statistics of empty": {"VACUUM ANALYZE {t}", "SELECT"},
		"fresh statistics":    {"SELECT", "VACUUM ANALYZE {t}"},
	} {
		for _, config := range tabletest.Configs(withZone) {
			if !stress() && config.Name != "Full" && config.Name != "StatusUpdated" {
				continue // the same statements
			}
			t.Run(name+"/"+config.Name, func(t *testing.T) {
				x := newShops(t, native, url, config, "varchar(255)", "shop_state")
				x.count.Store(n)
				table := x.fresh(t)
				n = x.count.Load()
				s := x.first
				fill := strings.NewReplacer("{t}", table.name).Replace
				s.exec(t, fill("ALTER TABLE {t} SET (autovacuum_enabled = off)"))
				s.exec(t, fill(prepare.before))
				const rows = 10_000
				tasks, ids := tasks(rows)
				x.put(t, table, "shop", tasks)
				s.exec(t, fill(prepare.after))
				var some []core.ID
				for i := range 500 {
					some = append(some, ids[i*rows/500])
				}
				byKey := &recorder{tableConn: tableConn{table: table}}
				ctx := t.Context()
				claimed, err := table.engine.Claim(ctx, byKey, some, core.Lease{Holder: "h", Now: at(1), DueBy: at(1), Until: at(31)})
				require.NoError(t, err)
				grants, settlements := make([]core.Grant, len(some)), make([]core.Settlement, len(some))
				for i, c := range claimed {
					require.Equal(t, core.Granted, c.Verdict)
					grants[i], settlements[i] = c.Grant, core.Settlement{Grant: c.Grant, Outcome: core.Retry, Due: at(60), Err: "e"}
				}
				require.NoError(t, table.engine.Extend(ctx, byKey, grants, at(40)))
				require.NoError(t, table.engine.Settle(ctx, byKey, at(2), settlements))
				_, err = table.engine.Claim(ctx, byKey, some, core.Lease{Holder: "h2", Now: at(3), DueBy: at(3), Until: at(33)})
				require.NoError(t, err)
				conn, err := s.pool.Acquire(ctx)
				require.NoError(t, err)
				defer conn.Release()
				key := table.def.Name + "_pkey"
				sweep := table.def.Name + "_shop_status_"
				require.NotEmpty(t, byKey.all)
				for _, p := range byKey.all {
					for _, plan := range []string{explain(t, conn.Conn(), p), explainGeneric(t, conn.Conn(), p)} {
						ok := strings.Contains(plan, key) && !strings.Contains(plan, "Seq Scan on "+table.def.Name) && !strings.Contains(plan, sweep)
						require.True(t, ok, "%s:\n%.3000s\n%s", p.name, plan, p.sql)
					}
				}
				sweeps := &recorder{tableConn: tableConn{table: table}}
				for _, after := range []core.Entry{{}, {ID: some[7], Due: at(0)}} {
					_, err = table.engine.Waiting(ctx, sweeps, at(100), after, at(2), 100)
					require.NoError(t, err)
				}
				for _, p := range sweeps.all {
					if strings.Contains(p.sql, "OFFSET 0") { // where the cursor stands
						continue
					}
					plan := explain(t, conn.Conn(), p)
					assert.True(t, strings.Contains(plan, sweep) && !strings.Contains(plan, "Seq Scan on"), "%.3000s\n%s", plan, p.sql)
				}
			})
		}
	}
}

// A partial index on the state serves although the state is an argument.
func TestAPartialIndexServesTheSweep(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	for _, state := range []string{"shop_state", "text", "varchar(20)"} {
		config := tabletest.Configs(withZone)[1]
		x := newShops(t, native, testserver.Postgres(t), config, "text", state)
		table := x.fresh(t)
		s := x.first
		s.exec(t, "DROP INDEX orders1_shop_status_created_at_order_id_idx")
		s.exec(t, "CREATE INDEX orders1_pending ON orders1 (shop, created_at, order_id) WHERE status = 'pending' AND deleted_at IS NULL")
		s.exec(t, "CREATE INDEX orders1_processing ON orders1 (shop, created_at, order_id) WHERE status = 'processing' AND deleted_at IS NULL")
		tasks, _ := tasks(5000)
		x.put(t, table, "shop", tasks)
		s.exec(t, "VACUUM ANALYZE orders1")
		fs, err := table.Verify(t.Context())
		require.NoError(t, err)
		_, missing := finding(fs, "due-index-missing", "created_at")
		assert.False(t, missing, "%s", fs)
		sweeps := &recorder{tableConn: tableConn{table: table}}
		_, err = table.engine.Waiting(t.Context(), sweeps, at(100), core.Entry{}, at(2), 100)
		require.NoError(t, err)
		conn, err := s.pool.Acquire(t.Context())
		require.NoError(t, err)
		plan := explain(t, conn.Conn(), sweeps.all[0])
		conn.Release()
		assert.True(t, strings.Contains(plan, "orders1_pending") && strings.Contains(plan, "orders1_processing"), "%s:\n%s", state, plan)
	}
}

// FuzzTableStatements: whatever names and values are, each statement stays what
// it is, and no value gets into its text.
func FuzzTableStatements(f *testing.F) {
	f.Add("orders", "order_id", "status", "pending", `it's "done"\`, "a'b", "h")
	f.Add("shop.Orders", "select", "from", "$1", "'; DROP TABLE orders; --", `{"a",b}`, "\\")
	f.Add(strings.Repeat("x", 63), strings.Repeat("y", 63), "ünicode", "\x00", "\xff", "日本", "'")
	f.Fuzz(func(t *testing.T, name, id, column, pending, done, task, holder string) {
		plain, err := newTable(handle{}, fuzzed("orders", "order_id", "status", "pending", "done"))
		require.NoError(t, err)
		odd, err := newTable(handle{}, fuzzed(name, id, column, pending, done))
		if err != nil {
			require.ErrorIs(t, err, core.ErrInvalid)
			return
		}
		want, got := fuzzStatements(plain, "1", "h"), fuzzStatements(odd, core.ID(task), holder)
		require.Len(t, got, len(want))
		for i := range want {
			a, err := tabletest.Shape(strings.ReplaceAll(want[i].sql, `"orders"`, `"shop"."orders"`), '"', false)
			require.NoError(t, err)
			text := got[i].sql
			if !strings.Contains(name, ".") {
				text = strings.ReplaceAll(text, odd.name, `"shop".`+odd.name)
			}
			b, err := tabletest.Shape(text, '"', false)
			require.NoError(t, err)
			require.Equal(t, a, b)
			require.Len(t, got[i].args, len(want[i].args), "arguments")
		}
	})
}

func fuzzed(name, id, column, pending, done string) claim.Table {
	at := func(name string, kind claim.TimeKind) claim.TimeColumn {
		c := claim.TimeColumn{Name: name, Kind: kind}
		if kind == claim.DateTime {
			c.Zone = time.UTC
		}
		return c
	}
	return claim.Table{
		Name: name, ID: claim.IDColumn{Name: id},
		State: claim.StateColumn{Name: column, Pending: claim.Text(pending), Processing: claim.Text("p"), Done: claim.Text(done)},
		Due:   claim.DueTime{Column: at(column+"_", claim.DateTime)}, Where: []claim.Condition{{Column: id + "_", Equals: claim.Text(done)}},
		Token: "t1", Holder: "t2", Lease: at("t3", claim.UnixMilli), LastError: "t4",
	}
}

// dry records statements and runs none.
type dry struct{ recorder }

func (d *dry) Query(_ context.Context, q sqltable.Query, _ func(sqltable.Row)) error {
	sql, args := d.table.query(q)
	d.all = append(d.all, planned{"query", sql, args})
	return nil
}

func (d *dry) Change(_ context.Context, c sqltable.Change) (sqltable.Changes, error) {
	sql, args := d.table.change(c, d.waits)
	d.all = append(d.all, planned{"change", sql, args})
	return sqltable.Changes{Changed: make([]bool, len(c.Items))}, nil
}

func fuzzStatements(table *Table, id core.ID, holder string) []planned {
	d := &dry{recorder{tableConn: tableConn{table: table}}}
	if table.CheckID(id) != nil {
		id = "1" // a malformed one is not sent
	}
	ctx := context.Background()
	_, _ = d.table.engine.Claim(ctx, d, []core.ID{id}, core.Lease{Holder: holder, Now: at(0), DueBy: at(0), Until: at(9)})
	g := core.Grant{ID: id, Token: 1, Holder: holder}
	_ = d.table.engine.Extend(ctx, d, []core.Grant{g}, at(9))
	for _, outcome := range []core.Outcome{core.Done, core.Retry, core.DeadLetter, core.Released} {
		_ = d.table.engine.Settle(ctx, d, at(1), []core.Settlement{{Grant: g, Outcome: outcome, Due: at(2), Err: holder}})
	}
	_, _ = d.table.engine.Waiting(ctx, d, at(1), core.Entry{ID: id, Due: at(0)}, at(9).Add(time.Second), 10)
	return d.all
}

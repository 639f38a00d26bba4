package pgclaim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// planned is a statement with arguments of a busy day: 500 of 60,000 ids.
type planned struct {
	name, sql string
	args      []any
}

func busyDay(s *Store, ids []core.ID) []planned {
	const n = 500
	some := make([]string, n)
	ones, empty, texts := make([]int64, n), make([][]byte, n), make([]string, n)
	small, no := make([]int32, n), make([]bool, n)
	for i := range some {
		some[i] = string(ids[i*len(ids)/n])
		ones[i], empty[i], texts[i] = 1, []byte{}, "pending"
	}
	now := base.UnixMilli()
	grants := []any{s.queue, some, ones, texts}
	return []planned{
		{"claim", s.sql.claim, []any{s.queue, some, "h", now, now, now, byOf(at(1))}},
		{"seeClaims", s.sql.seeClaims, []any{s.queue, some, "h"}},
		{"extend", s.sql.extend, append(grants[:4:4], now)},
		{"seeGrants", s.sql.seeGrants, []any{s.queue, some}},
		{"settle", s.sql.settle, append(grants[:4:4], now, texts, ones, no, texts)},
		{"settleTx", s.sql.settleTx, append(grants[:4:4], now, texts, ones, no, texts)},
		{"deleteDone", s.sql.deleteDone, grants},
		{"insert", s.sql.insert, []any{s.queue, some, "c", now, ones, small, texts, empty, empty, byOf(at(1))}},
		{"seeInserts", s.sql.seeInserts, []any{s.queue, some}},
		{"cancel", s.sql.cancel, []any{s.queue, some, now, byOf(at(1))}},
		{"cancelDelete", s.sql.cancelDelete, []any{s.queue, some, now, byOf(at(1))}},
		{"seeAll", s.sql.seeAll, []any{s.queue, some}},
		{"reschedule", s.sql.reschedule, []any{s.queue, some, ones, ones, byOf(at(1))}},
	}
}

func (s *Store) waitingPlan(limit int) planned {
	return planned{"waiting", s.sql.waiting, []any{s.queue, int64(-1), "", base.UnixMilli() + 1, base.UnixMilli(), int64(limit)}}
}

// explain returns the plan made for these very arguments, which is how the
// store's statements are planned.
func explain(t testing.TB, c *pgx.Conn, p planned) string {
	t.Helper()
	args := append([]any{pgx.QueryExecModeDescribeExec}, p.args...)
	return lines(t, c, "EXPLAIN "+p.sql, args...)
}

// explainGeneric returns the plan that a prepared statement would keep.
func explainGeneric(t testing.TB, c *pgx.Conn, p planned) string {
	t.Helper()
	_, err := c.Exec(t.Context(), "DEALLOCATE ALL")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "SET plan_cache_mode = force_generic_plan")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "PREPARE p AS "+p.sql)
	require.NoError(t, err, p.sql)
	places := make([]string, len(p.args))
	for i := range places {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	args := append([]any{pgx.QueryExecModeSimpleProtocol}, p.args...)
	return lines(t, c, "EXPLAIN EXECUTE p("+strings.Join(places, ", ")+")", args...)
}

func lines(t testing.TB, c *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	rows, err := c.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err, sql)
	return strings.Join(got, "\n")
}

// quiet keeps autovacuum from making statistics that a test wants stale.
func (s *Store) quiet(t testing.TB) {
	s.exec(t, "ALTER TABLE dueclaim_tasks SET (autovacuum_enabled = off)")
}

func TestIdsAreLookedUpByPrimaryKeyWhateverTheStatisticsSay(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	in, ids := tasks(60_000)
	for name, prepare := range map[string]struct{ before, after string }{
		"no statistics":       {"SELECT", "SELECT"},
		"statistics of empty": {"VACUUM ANALYZE dueclaim_tasks", "SELECT"},
		"fresh statistics":    {"SELECT", "VACUUM ANALYZE dueclaim_tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			s := native.migrated(t, Options{})
			s.quiet(t)
			s.exec(t, prepare.before)
			require.NoError(t, s.Insert(t.Context(), call("c"), in))
			s.exec(t, prepare.after)
			conn, err := s.pool.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			for _, p := range busyDay(s, ids) {
				for _, plan := range []string{explain(t, conn.Conn(), p), explainGeneric(t, conn.Conn(), p)} {
					byKey := strings.Contains(plan, "dueclaim_tasks_pkey")
					for _, other := range []string{"Seq Scan", "dueclaim_tasks_due", "dueclaim_tasks_finished"} {
						byKey = byKey && !strings.Contains(plan, other)
					}
					require.True(t, byKey, "%s:\n%.3000s", p.name, plan)
				}
			}
			for _, limit := range []int{1, 100, 1000} {
				plan := explain(t, conn.Conn(), s.waitingPlan(limit))
				inOrder := strings.Contains(plan, "Index Scan using dueclaim_tasks_due") && !strings.Contains(plan, "Sort") &&
					strings.Contains(plan, "Index Cond: ((ROW(queue, due, id) > ") && strings.Contains(plan, "(ROW(queue, due) < ")
				require.True(t, inOrder, "%d rows:\n%.3000s", limit, plan)
			}
		})
	}
}

// A named prepared statement would keep the plan that was right for the empty
// table.
func TestABurstAfterQuietTimesIsNotScanned(t *testing.T) {
	for _, d := range []driver{native, standard} {
		t.Run(d.name(), func(t *testing.T) {
			t.Attr("dueclaim.backend", d.backend())
			s := d.migrated(t, Options{})
			if s.pool == nil {
				s.db.SetMaxOpenConns(1) // one connection, one plan cache
			}
			s.quiet(t)
			s.exec(t, "VACUUM ANALYZE dueclaim_tasks")
			in, ids := tasks(20_000)
			for i := range 10 {
				_, err := s.Claim(t.Context(), ids[:500], lease(fmt.Sprint("quiet", i), 0))
				require.NoError(t, err)
				nobody := []core.Settlement{{Grant: core.Grant{ID: "x", Holder: "h"}, Outcome: core.Done}}
				require.ErrorIs(t, s.Settle(t.Context(), at(0), nobody), core.ErrLeaseLost)
			}
			require.NoError(t, s.Insert(t.Context(), call("c"), in))
			before := s.scanned(t)
			claimed, err := s.Claim(t.Context(), ids[:500], lease("burst", 0))
			require.NoError(t, err)
			grants := make([]core.Grant, len(claimed))
			settlements := make([]core.Settlement, len(claimed))
			for i, c := range claimed {
				require.Equal(t, core.Granted, c.Verdict)
				grants[i], settlements[i] = c.Grant, core.Settlement{Grant: c.Grant, Outcome: core.Done}
			}
			require.NoError(t, s.Extend(t.Context(), grants, at(30)))
			require.NoError(t, s.Settle(t.Context(), at(1), settlements))
			// Index scans are counted once the statistics arrive; the sequential ones with them.
			require.Eventually(t, func() bool { return s.scanned(t).byIndex >= before.byIndex+500 }, 20*time.Second, 100*time.Millisecond)
			assert.Equal(t, before.rows, s.scanned(t).rows, "rows read by sequential scans")
		})
	}
}

type scans struct{ rows, byIndex int }

func (s *Store) scanned(t testing.TB) (n scans) {
	t.Helper()
	r, err := s.runner(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.run(context.WithoutCancel(t.Context()), `
		SELECT t.seq_tup_read, coalesce((SELECT sum(i.idx_tup_read) FROM pg_stat_user_indexes AS i
		        WHERE i.relid = t.relid AND i.indexrelname = 'dueclaim_tasks_pkey'), 0)::bigint
		  FROM pg_stat_user_tables AS t WHERE t.relname = 'dueclaim_tasks'`, nil,
		func(scan scanner) error { return scan(&n.rows, &n.byIndex) }))
	return n
}

func TestWaitingCostsByItsLimitAndNotByTheBacklog(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.migrated(t, Options{})
	in, ids := tasks(50_000)
	require.NoError(t, s.Insert(t.Context(), call("c"), in))
	claimed, err := s.Claim(t.Context(), ids[:200], lease("h", 0)) // at the head
	require.NoError(t, err)
	require.Equal(t, core.Granted, claimed[199].Verdict)

	waiting, err := s.Waiting(t.Context(), at(0), core.Entry{}, at(1), 10)
	require.NoError(t, err)
	require.Len(t, waiting, 10)
	assert.Equal(t, ids[200], waiting[0].ID, "running rows at the head don't hide those behind them")

	conn, err := s.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	p := s.waitingPlan(10)
	plan := lines(t, conn.Conn(), "EXPLAIN (ANALYZE, TIMING OFF) "+p.sql, append([]any{pgx.QueryExecModeDescribeExec}, p.args...)...)
	assert.Contains(t, plan, "Rows Removed by Filter: 200", plan)
}

func TestClaimsAndExtensionsAreHOT(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.migrated(t, Options{})
	s.quiet(t)
	const n = 500
	in, all := tasks(10 * n)
	require.NoError(t, s.Insert(t.Context(), call("c"), in))
	var ids []core.ID // as due times spread them: not all of one page in one statement
	for i := range n {
		ids = append(ids, all[10*i])
	}
	claimed, err := s.Claim(t.Context(), ids, lease("h", 0))
	require.NoError(t, err)
	grants := make([]core.Grant, n)
	for i, c := range claimed {
		require.Equal(t, core.Granted, c.Verdict)
		grants[i] = c.Grant
	}
	for i := range 3 {
		require.NoError(t, s.Extend(t.Context(), grants, at(20+i)))
	}
	counts := func() (updates, hot int) {
		r, err := s.runner(t.Context())
		require.NoError(t, err)
		require.NoError(t, r.run(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'dueclaim_tasks'`, nil,
			func(scan scanner) error { return scan(&updates, &hot) }))
		return updates, hot
	}
	require.Eventually(t, func() bool { updates, _ := counts(); return updates >= 4*n }, 20*time.Second, 100*time.Millisecond)
	updates, hot := counts()
	assert.Greater(t, float64(hot), 0.95*float64(updates), "%d of %d updates were HOT", hot, updates)
}

package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// step is a line of a plan.
type step struct{ table, access, key, extra string }

// explain returns a statement's plan in the classic form of both servers.
func explain(t *testing.T, b backend, s *Store, stmt *text) []step {
	t.Helper()
	verb := "EXPLAIN "
	if b.name == "store:mysql" {
		verb = "EXPLAIN FORMAT=TRADITIONAL "
	}
	setting, rest := "", stmt.String()
	if strings.HasPrefix(rest, "SET STATEMENT") {
		setting, rest, _ = strings.Cut(rest, " FOR ")
		setting += " FOR "
	}
	rows, err := s.db.QueryContext(t.Context(), setting+verb+rest)
	require.NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	var plan []step
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		var p step
		targets := scanTargets(values)
		require.NoError(t, rows.Scan(targets...))
		for i, name := range columns {
			switch strings.ToLower(name) {
			case "table":
				p.table = values[i].String
			case "type":
				p.access = values[i].String
			case "key":
				p.key = values[i].String
			case "extra":
				p.extra = values[i].String
			}
		}
		plan = append(plan, p)
	}
	require.NoError(t, rows.Err())
	return plan
}

func scanTargets(values []sql.NullString) []any {
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	return targets
}

// fill makes a table whose statistics tempt an optimizer: most rows are
// finished, so that their due is NULL, and few are due.
func fill(t *testing.T, s *Store) []core.Task {
	t.Helper()
	ctx := t.Context()
	list := someTasks("n", 4000)
	insert(t, s, list...)
	for _, stmt := range []string{
		"UPDATE " + s.quoted + " SET status = 'done', due = NULL, finished_at = 5 WHERE id > 'n-00600'",
		"UPDATE " + s.quoted + " SET due = due + 100000 WHERE id > 'n-00550' AND due IS NOT NULL",
		"ANALYZE TABLE " + s.quoted,
	} {
		_, err := s.db.ExecContext(ctx, stmt)
		require.NoError(t, err)
	}
	return list
}

func TestChangingStatementsFindTheirRowsByPrimaryKey(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		list := fill(t, s)
		direct := s.auto(time.Time{})
		require.Equal(t, b.name == "store:mariadb", direct.direct)
		r := direct
		r.direct = false
		grant(t, s, leaseOf("h", base), idsOf(list[:500])...)
		for _, n := range []int{1, 2, 20, 500} {
			ids := sorted(idsOf(list[:n]), sameID)
			tasks := sorted(list[:n], taskID)
			var grants, various []core.Grant // of one token, of a token each
			var settlements []core.Settlement
			var moves []core.Move
			for _, it := range ids {
				g := core.Grant{ID: it.v, Token: base.UnixMilli() + 1, Holder: "h"}
				grants = append(grants, g)
				various = append(various, core.Grant{ID: it.v, Token: g.Token + int64(it.at), Holder: "h"})
				settlements = append(settlements, core.Settlement{Grant: g, Due: base, Err: "e"})
				moves = append(moves, core.Move{ID: it.v, To: base})
			}
			settled := sorted(settlements, settlementID)
			deleting := &Store{quoted: s.quoted, queue: s.queue, deleteFinished: true}
			for name, stmt := range map[string]*text{
				"claim":      s.claimStatement(idList(ids, sameID), leaseOf("h", base), n, r),
				"extend":     s.extendStatement(sorted(grants, grantID), base, r),
				"done":       s.settleStatement(core.Done, settled, base, r),
				"delete":     deleting.settleStatement(core.Done, settled, base, r),
				"delete all": deleting.removeAll(byGrants(deleting, settled, settlementGrant, "", r), n),
				"various":    s.extendStatement(sorted(various, grantID), base, r),
				"retry":      s.settleStatement(core.Retry, settled, base, r),
				"dead":       s.settleStatement(core.DeadLetter, settled, base, r),
				"released":   s.settleStatement(core.Released, settled, base, r),
				"cancel":     s.cancelStatement(idList(ids, sameID), base, n, r),
				"reschedule": s.rescheduleStatement(sorted(moves, moveID), r),
				"purge":      s.purgeStatement(ids, base, r),
				"replace":    s.replaceStatement(tasks, callNamed("c"), r),
			} {
				onlyPrimary(t, fmt.Sprintf("%s of %d", name, n), n, 2, explain(t, b, s, stmt))
			}
			if !direct.direct {
				continue
			}
			for name, stmt := range map[string]*text{
				"claim":  s.claimStatement(idList(ids, sameID), leaseOf("h", base), n, direct),
				"extend": s.extendStatement(sorted(grants, grantID), base, direct),
				"done":   s.settleStatement(core.Done, settled, base, direct),
			} {
				onlyPrimary(t, fmt.Sprintf("direct %s of %d", name, n), n, 1, explain(t, b, s, stmt))
			}
		}
	})
}

// onlyPrimary fails when a step on the task table isn't by primary key, or there are
// not so many: two where the rows are locked before they are changed.
func onlyPrimary(t *testing.T, about string, n, steps int, plan []step) {
	t.Helper()
	lookups, materialized := 0, false
	for _, p := range plan {
		materialized = materialized || strings.HasPrefix(p.table, "<derived")
		if p.table == "t" || p.table == "b" || p.table == "dueclaim_tasks" {
			lookups++
			assert.Equal(t, "PRIMARY", p.key, "%s: index for %s in %v", about, p.table, plan)
			assert.Contains(t, []string{"const", "eq_ref", "range", "ref"}, p.access, "%s: access to %s in %v", about, p.table, plan)
		}
	}
	if n == 1 {
		return // read while the plan is made, as a constant
	}
	assert.Equal(t, steps, lookups, "%s: the rows are found once to lock and once to change: %v", about, plan)
	assert.Equal(t, steps == 2, materialized, "%s: a derived table that was merged loses SKIP LOCKED: %v", about, plan)
}

func TestSweepsWalkTheDueIndexInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		fill(t, s)
		for name, stmt := range map[string]*text{
			"from the start":       s.waitingStatement(base, spans(core.Entry{}, base.Add(time.Hour))[0], 100),
			"next page":            s.waitingStatement(base, spans(core.Entry{ID: "n-00100", Due: base}, base.Add(time.Hour))[0], 100),
			"next page, due later": s.waitingStatement(base, spans(core.Entry{ID: "n-00100", Due: base}, base.Add(time.Hour))[1], 100),
			"purge":                s.purgeable(base, finished{}, 100),
			"purge, next page":     s.purgeable(base, finished{ids: []core.ID{"n-00100"}, last: 5}, 100),
		} {
			plan := explain(t, b, s, stmt)
			require.Len(t, plan, 1, name)
			assert.Equal(t, dueIndex, plan[0].key, "%s: %v", name, plan)
			assert.Contains(t, []string{"range", "ref"}, plan[0].access, "%s: %v", name, plan)
			assert.NotContains(t, plan[0].extra, "filesort", "%s: %v", name, plan)
		}
	})
}

// rowsRead returns how many rows of indexes the session has read.
func rowsRead(t *testing.T, c *sql.Conn) (n int) {
	t.Helper()
	rows, err := c.QueryContext(t.Context(), "SHOW SESSION STATUS LIKE 'Handler_read%'")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var value int
		require.NoError(t, rows.Scan(&name, &value))
		n += value
	}
	require.NoError(t, rows.Err())
	return n
}

func TestWaitingReadsNoMoreThanItReturnsHoweverLongTheBacklog(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		insert(t, s, someTasks("n", 3000)...)
		grant(t, s, leaseOf("h", base), idsOf(someTasks("n", 20))...)
		c, err := s.db.Conn(t.Context())
		require.NoError(t, err)
		defer c.Close()
		page := func(after core.Entry) (read int) {
			before := rowsRead(t, c)
			n := 0
			require.NoError(t, runner{conn: c, dialect: s.dialect(), reading: []string{allRows}}.rows(context.WithoutCancel(t.Context()), s.waitingStatement(base, spans(after, at(1))[0], 50),
				func(*sql.Rows) error { n++; return nil }))
			assert.Equal(t, 50, n)
			return rowsRead(t, c) - before
		}
		assert.Less(t, page(core.Entry{}), 100, "20 running ones at the head, 50 that wait")
		assert.Less(t, page(core.Entry{Due: at(0), ID: "n-02000"}), 100, "50 that wait, in the midst of 3,000 that are due at one instant")
	})
}

func TestStatementsStayWithinTheChunkLimits(t *testing.T) {
	big := someTasks("n", 5)
	for i := range big {
		big[i].Payload = slices.Repeat([]byte{0xff}, core.MaxPayloadBytes)
	}
	assert.Equal(t, 5, chunksOf(sorted(big, taskID), taskBytes), "a megabyte a statement")
	assert.Equal(t, 3, chunksOf(sorted(someTasks("n", 1001), taskID), taskBytes), "500 rows a statement")
	s := &Store{quoted: "`t`", queue: "q"}
	one := sorted(big[:1], taskID)
	assert.LessOrEqual(t, len(s.insertStatement(one, callNamed("c"), runner{by: base}).String()), taskBytes(one[0])+900, "taskBytes bounds the text of a row")
}

func chunksOf[T any](items []item[T], size func(item[T]) int) (n int) {
	for range chunks(items, size) {
		n++
	}
	return n
}

package mysqlclaim

import (
	"context"
	"database/sql"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// The shape of every changing statement:
//
//	UPDATE (SELECT … FROM t WHERE <ids and guard> LIMIT n FOR UPDATE SKIP LOCKED) AS was
//	STRAIGHT_JOIN t ON <primary key> SET t.token = was.token + 1, …
//
// The derived table locks what is free and matches the guard, and has the old
// values, current ones, since a locking read sees the newest commit. The LIMIT
// keeps MySQL from merging it into the outer query, where SKIP LOCKED would be
// lost. FORCE INDEX keeps it on the primary key whatever the statistics say: a
// claim that chose the due index would lock in another order and deadlock. New
// values are computed from was alone, so it doesn't matter in which order a
// multi-table UPDATE assigns them.

// picked is the derived table of the rows for which where holds; it bounds the ids.
func (s *Store) picked(columns string, where func(*text), n int, r runner) *text {
	t := new(text).sql("(SELECT ", columns, " FROM ", s.quoted, " FORCE INDEX (PRIMARY) WHERE queue = ").val(s.queue).sql(" AND ")
	where(t)
	return t.sql(" LIMIT ").int(int64(n)).sql(" FOR UPDATE", r.skip, ")")
}

// byIDs is the derived table of rows by an IN list.
func (s *Store) byIDs(columns string, ids, guard func(*text), n int, r runner) *text {
	return s.picked(columns, among(ids, guard), n, r)
}

// among holds for rows with one of the ids for which guard holds.
func among(ids, guard func(*text)) func(*text) {
	return func(t *text) {
		t.sql("id IN (")
		ids(t)
		t.sql(") AND ")
		guard(t)
	}
}

// byValues is the derived table of rows joined with a table of literals, v,
// which has what differs from item to item. values writes it; v has a column id.
func (s *Store) byValues(columns string, values func(*text), guard string, n int, r runner) *text {
	t := new(text).sql("(SELECT ", columns, " FROM (")
	values(t)
	t.sql(") AS v STRAIGHT_JOIN ", s.quoted, " AS b FORCE INDEX (PRIMARY) ON b.queue = ").val(s.queue)
	t.sql(" AND b.id = v.id WHERE ", guard)
	return t.sql(" LIMIT ").int(int64(n)).sql(" FOR UPDATE", r.skip, ")")
}

// update joins a derived table with the rows to change; the caller appends the
// assignments.
func (s *Store) update(was *text) *text {
	return s.joined(new(text).sql("UPDATE "), was).sql(" SET ")
}

// directly changes rows without a derived table, and so with one look at each instead
// of three; the caller appends the assignments, in an order in which none reads what
// one before it wrote, and the condition. Where a row is locked the server neither
// waits nor passes over it, but changes nothing and fails with errLockTimeout.
func (s *Store) directly() *text {
	t := &text{direct: true}
	return t.sql("UPDATE ", s.quoted, " AS t FORCE INDEX (PRIMARY) SET ")
}

// remove deletes the rows of a derived table.
func (s *Store) remove(was *text) *text {
	return s.joined(new(text).sql("DELETE t FROM "), was)
}

// removeAll deletes the n rows of a derived table, or none where it has fewer.
func (s *Store) removeAll(was *text, n int) *text {
	if n == 1 {
		return s.remove(was)
	}
	counted := new(text).sql("(SELECT id, COUNT(*) OVER () AS n FROM ")
	counted.b = append(counted.b, was.b...)
	return s.remove(counted.sql(" AS held)")).sql(" WHERE was.n = ").int(int64(n))
}

func (s *Store) joined(t, was *text) *text {
	t.b = append(t.b, was.b...)
	return t.sql(" AS was STRAIGHT_JOIN ", s.quoted, " AS t FORCE INDEX (PRIMARY) ON t.queue = ").val(s.queue).sql(" AND t.id = was.id")
}

// idList writes the ids of items, separated by commas.
func idList[T any](items []item[T], id func(T) core.ID) func(*text) {
	return func(t *text) {
		for i, it := range items {
			if i > 0 {
				t.sql(", ")
			}
			t.val(string(id(it.v)))
		}
	}
}

// table writes a table of literals, one SELECT an item; the first one names the
// columns. row writes an item's values through the function it is given.
func table[T any](items []item[T], columns []string, row func(v T, next func() *text)) func(*text) {
	return func(t *text) {
		for i, it := range items {
			if i > 0 {
				t.sql(" UNION ALL ")
			}
			t.sql("SELECT ")
			k := 0
			name := func() { // names the column that was just written
				if i == 0 && k > 0 {
					t.sql(" AS ", columns[k-1])
				}
			}
			row(it.v, func() *text {
				name()
				if k > 0 {
					t.sql(", ")
				}
				k++
				return t
			})
			name()
		}
	}
}

// readBack reads rows by id: the state that decides what an item's missing
// change means. A row that isn't there is missing in the map. It reads without
// locks outside of a transaction, so a row that another transaction holds is
// seen as it was last committed.
func (s *Store) readBack(ctx context.Context, r runner, ids func(*text)) (map[core.ID]claim.Row, error) {
	t := new(text).sql("SELECT id, status, COALESCE(due, 0), token, holder, lease_until, call_id FROM ",
		s.quoted, " FORCE INDEX (PRIMARY) WHERE queue = ").val(s.queue).sql(" AND id IN (")
	ids(t)
	t.sql(")", r.read)
	found := map[core.ID]claim.Row{}
	err := r.rows(ctx, t, func(rows *sql.Rows) error {
		var row claim.Row
		if err := rows.Scan(&row.ID, &row.Status, &row.Due, &row.Token, &row.Holder, &row.LeaseUntil, &row.CallID); err != nil {
			return err
		}
		found[row.ID] = row
		return nil
	})
	return found, err
}

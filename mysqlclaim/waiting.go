package mysqlclaim

import (
	"context"
	"database/sql"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Waiting walks the due index from its head (or from after) and looks up the row
// of each entry, so that it passes over the running ones.
func (s *Store) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	var out []core.Entry
	err := s.auto().rows(ctx, s.waitingStatement(now, after, before, limit), func(rows *sql.Rows) error {
		var id core.ID
		var due int64
		if err := rows.Scan(&id, &due); err != nil {
			return err
		}
		out = append(out, core.Entry{ID: id, Due: time.UnixMilli(due).UTC()})
		return nil
	})
	return out, s.fail("waiting", err)
}

// The index is (queue, due, finished_at, id). finished_at is NULL in every live
// row, so this order is the one by due and id.
func (s *Store) waitingStatement(now time.Time, after core.Entry, before time.Time, limit int) *text {
	t := new(text).sql("SELECT id, due FROM ", s.quoted, " FORCE INDEX (", dueIndex, ") WHERE queue = ").val(s.queue)
	t.sql(" AND due < ").int(before.UnixMilli())
	if !after.Due.IsZero() {
		d := after.Due.UnixMilli()
		t.sql(" AND due >= ").int(d).sql(" AND (due > ").int(d).sql(" OR id > ").val(string(after.ID)).sql(")")
	}
	t.sql(" AND (status = 'pending' OR (status = 'running' AND lease_until < ").int(now.UnixMilli())
	return t.sql(")) ORDER BY due, finished_at, id LIMIT ").int(int64(limit))
}

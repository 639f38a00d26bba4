package mysqlclaim

import (
	"context"
	"database/sql"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Waiting walks the due index from its head (or from after) and looks up the row of
// each entry, so that it passes over the running ones. From after it takes two
// statements: the rest of those due at that instant, and what is due later. One with
// an OR reads all that are due at the instant again, for each page of them.
func (s *Store) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := ctx.Err(); err != nil { // there may be nothing to ask for
		return nil, s.fail("waiting", err)
	}
	if err := s.ready(ctx, s.db); err != nil {
		return nil, s.fail("waiting", err)
	}
	r := s.auto(time.Time{})
	var out []core.Entry
	for _, part := range spans(after, before) {
		if len(out) >= limit {
			break
		}
		err := r.rows(ctx, s.waitingStatement(now, part, limit-len(out)), func(rows *sql.Rows) error {
			var id core.ID
			var due int64
			if err := rows.Scan(&id, &due); err != nil {
				return err
			}
			out = append(out, core.Entry{ID: id, Due: time.UnixMilli(due).UTC()})
			return nil
		})
		if err != nil {
			return nil, s.fail("waiting", err)
		}
	}
	return out, nil
}

// span is a part of the due index, in its order.
type span struct {
	where func(*text)
	order string
}

// The index is (queue, due, finished_at, id). finished_at is NULL in every live
// row, so its order is the one by due and id.
const byDue = "due, finished_at, id"

// spans are what is due after an entry and before an instant.
func spans(after core.Entry, before time.Time) []span {
	end := before.UnixMilli()
	if after.Due.IsZero() {
		return []span{{func(t *text) { t.sql("due < ").int(end) }, byDue}}
	}
	due := after.Due.UnixMilli()
	if due >= end {
		return nil
	}
	return []span{
		// By id alone: MariaDB would sort, not seeing that the others are constant.
		{func(t *text) {
			t.sql("due = ").int(due).sql(" AND finished_at IS NULL AND id > ").val(string(after.ID))
		}, "id"},
		{func(t *text) { t.sql("due > ").int(due).sql(" AND due < ").int(end) }, byDue},
	}
}

func (s *Store) waitingStatement(now time.Time, part span, limit int) *text {
	t := new(text).sql("SELECT id, due FROM ", s.quoted, " FORCE INDEX (", dueIndex, ") WHERE queue = ").val(s.queue).sql(" AND ")
	part.where(t)
	t.sql(" AND (status = 'pending' OR (status = 'running' AND lease_until < ").int(now.UnixMilli())
	return t.sql(")) ORDER BY ", part.order, " LIMIT ").int(int64(limit))
}

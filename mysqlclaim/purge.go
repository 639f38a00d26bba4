package mysqlclaim

import (
	"context"
	"database/sql"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// purgeRows bounds the rows of one DELETE.
const purgeRows = 200

// Purge reads the ids without locks and deletes them by primary key, 200 at a
// time, passing over locked rows. Its reading passes over the dead rows that
// were finished before. Fewer than limit are deleted only where there are no more:
// others may purge the same rows at the same time, so it reads on.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	if err := s.ready(ctx, s.db); err != nil {
		return 0, s.fail("purge", err)
	}
	r := s.auto(time.Time{})
	purged := 0
	var after finished // nothing
	for purged < limit {
		page, err := s.finished(ctx, r, before, after, limit)
		if err != nil {
			return purged, s.fail("purge", err)
		}
		for _, chunk := range claim.Chunks(sorted(page.ids, sameID), purgeRows, chunkBytes, idBytes(sameID)) {
			chunk = chunk[:min(len(chunk), limit-purged)]
			n, err := r.exec(ctx, s.purgeStatement(chunk, before, r))
			if err != nil {
				return purged, s.fail("purge", err)
			}
			if purged += n; purged == limit {
				return purged, nil
			}
		}
		if len(page.ids) < limit {
			break
		}
		after = page
	}
	return purged, nil
}

// finished are ids that may be purged, in the order of the index, and when the last of
// them was finished.
type finished struct {
	ids  []core.ID
	last int64
}

// finished reads the page behind another one.
func (s *Store) finished(ctx context.Context, r runner, before time.Time, after finished, limit int) (page finished, err error) {
	err = r.rows(ctx, s.purgeable(before, after, limit), func(rows *sql.Rows) error {
		var id core.ID
		err := rows.Scan(&id, &page.last)
		page.ids = append(page.ids, id)
		return err
	})
	return page, err
}

func (s *Store) purgeable(before time.Time, after finished, limit int) *text {
	t := new(text).sql("SELECT id, finished_at FROM ", s.quoted, " FORCE INDEX (", dueIndex, ") WHERE queue = ").val(s.queue)
	t.sql(" AND due IS NULL AND finished_at < ").int(before.UnixMilli())
	if n := len(after.ids); n > 0 {
		t.sql(" AND finished_at >= ").int(after.last).sql(" AND (finished_at > ").int(after.last).sql(" OR id > ").val(string(after.ids[n-1])).sql(")")
	}
	return t.sql(" AND status IN ('done', 'cancelled') ORDER BY finished_at, id LIMIT ").int(int64(limit))
}

func (s *Store) purgeStatement(chunk []item[core.ID], before time.Time, r runner) *text {
	was := s.byIDs("id", idList(chunk, sameID), func(t *text) {
		t.sql("status IN ('done', 'cancelled') AND finished_at < ").int(before.UnixMilli())
	}, len(chunk), r)
	return s.remove(was)
}

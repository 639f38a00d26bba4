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
// were finished before.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	if err := s.ready(ctx); err != nil {
		return 0, s.fail("purge", err)
	}
	r := s.auto()
	var ids []core.ID
	err := r.rows(ctx, s.purgeable(before, limit), func(rows *sql.Rows) error {
		var id core.ID
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return 0, s.fail("purge", err)
	}
	purged := 0
	for _, chunk := range claim.Chunks(sorted(ids, sameID), purgeRows, chunkBytes, idBytes(sameID)) {
		n, err := r.exec(ctx, s.purgeStatement(chunk, before, r))
		if err != nil {
			return purged, s.fail("purge", err)
		}
		purged += n
	}
	return purged, nil
}

func (s *Store) purgeable(before time.Time, limit int) *text {
	t := new(text).sql("SELECT id FROM ", s.quoted, " FORCE INDEX (", dueIndex, ") WHERE queue = ").val(s.queue)
	t.sql(" AND due IS NULL AND finished_at < ").int(before.UnixMilli())
	return t.sql(" AND status IN ('done', 'cancelled') ORDER BY finished_at LIMIT ").int(int64(limit))
}

func (s *Store) purgeStatement(chunk []item[core.ID], before time.Time, r runner) *text {
	was := s.byIDs("id", idList(chunk, sameID), func(t *text) {
		t.sql("status IN ('done', 'cancelled') AND finished_at < ").int(before.UnixMilli())
	}, len(chunk), r)
	return s.remove(was)
}

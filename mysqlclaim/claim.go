package mysqlclaim

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func sameID(id core.ID) core.ID { return id }

func idBytes[T any](id func(T) core.ID) func(item[T]) int {
	return func(it item[T]) int { return literalBytes(len(id(it.v))) + 2 }
}

// Claim is one UPDATE and one read-back for each 500 ids; on MariaDB two UPDATEs
// where a row is locked. A row that another transaction has locked is answered as it
// was last committed, so mostly Refused.
func (s *Store) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := s.ready(ctx, s.db); err != nil {
		return nil, s.fail("claim", err)
	}
	out := make([]core.Claimed, len(ids))
	r := s.auto(lease.By)
	for _, chunk := range chunks(sorted(ids, sameID), idBytes(sameID)) {
		if err := s.claimChunk(ctx, r, chunk, lease, out); err != nil {
			return nil, s.fail("claim", r.effect.prove(err))
		}
	}
	return out, nil
}

func (s *Store) claimChunk(ctx context.Context, r runner, chunk []item[core.ID], lease core.Lease, out []core.Claimed) error {
	ids := idList(chunk, sameID)
	changed, err := r.change(ctx, func(r runner) *text { return s.claimStatement(ids, lease, len(chunk), r) })
	if err != nil {
		return err
	}
	for _, it := range chunk {
		out[it.at] = claim.Gone(it.v)
	}
	ours := 0
	err = s.claimedRows(ctx, r, ids, lease, func(row *claim.Row) {
		i, ok := slices.BinarySearchFunc(chunk, row.ID, func(it item[core.ID], id core.ID) int { return cmp.Compare(it.v, id) })
		if !ok {
			return // not asked for
		}
		if row.Holder == lease.Holder {
			ours++
		}
		out[chunk[i].at] = row.Claimed(lease)
	})
	if err != nil {
		return err
	}
	// A proxy that sends reads to a replica would make won claims look lost. (A
	// row cancelled and deleted between the two statements looks the same; the
	// caller's repeat then clears it up.)
	if ours < changed {
		return fmt.Errorf("the read-back saw %d of %d claimed rows: they were changed meanwhile, or a proxy sends reads to a replica, while mysqlclaim needs the primary", ours, changed)
	}
	return nil
}

// A row held by this very holder is left as it is, also when its lease ended: a
// repeat finds what was granted, it doesn't grant it again.
func (s *Store) claimStatement(ids func(*text), lease core.Lease, n int, r runner) *text {
	where := among(ids, func(t *text) {
		t.sql("due <= ").int(lease.DueBy.UnixMilli())
		t.sql(" AND (status = 'pending' OR (status = 'running' AND lease_until < ").int(lease.Now.UnixMilli())
		t.sql(" AND holder <> ").val(lease.Holder).sql("))").andInTime(r.by)
	})
	set := func(t *text, was string) *text {
		t.sql("t.crashes = ", was, ".crashes + (", was, ".status = 'running'), t.attempts = ", was, ".attempts + 1, t.token = ", was, ".token + 1")
		return t.sql(", t.status = 'running', t.holder = ").val(lease.Holder).sql(", t.lease_until = ").int(lease.Until.UnixMilli())
	}
	if r.direct {
		t := set(s.directly(), "t").sql(" WHERE queue = ").val(s.queue).sql(" AND ")
		where(t)
		return t
	}
	return set(s.update(s.picked("id, status, token, attempts, crashes", where, n, r)), "was")
}

// claimedRows reads the rows with all that a grant needs, payloads only of the
// granted ones, and calls each for them.
func (s *Store) claimedRows(ctx context.Context, r runner, ids func(*text), lease core.Lease, each func(*claim.Row)) error {
	t := new(text).sql("SELECT id, status, COALESCE(due, 0), planned, token, holder, lease_until, attempts, crashes, max_attempts, kind, IF(holder = ")
	t.val(lease.Holder).sql(", payload, NULL), IF(holder = ").val(lease.Holder)
	t.sql(", meta, NULL) FROM ", s.quoted, " FORCE INDEX (PRIMARY) WHERE queue = ").val(s.queue).sql(" AND id IN (")
	ids(t)
	t.sql(")")
	return r.rows(ctx, t, func(rows *sql.Rows) error {
		var row claim.Row
		if err := rows.Scan(&row.ID, &row.Status, &row.Due, &row.Planned, &row.Token, &row.Holder, &row.LeaseUntil,
			&row.Attempts, &row.Crashes, &row.MaxAttempts, &row.Kind, &row.Payload, &row.Meta); err != nil {
			return err
		}
		each(&row)
		return nil
	})
}

package redisindex

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var _ core.Lister = (*Index)(nil)

// List implements [core.Lister]: one round trip for each 1,000 entries. What is no
// entry is passed over.
func (x *Index) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, x.wrap("list", err)
	}
	from, last := max(0, after.Due.UnixMilli()), before.UnixMilli()-1
	id := string(after.ID)
	if after.Due.UnixMilli() < 0 {
		id = "" // before all there are
	}
	var entries []core.Entry
	for len(entries) < limit {
		page, err := x.listPage(ctx, from, id, last, min(limit-len(entries), duePage))
		if err != nil {
			return nil, x.wrap("list", err)
		}
		if len(page) == 0 {
			break
		}
		for _, s := range page {
			due, err := parseDue(s.score)
			if err != nil {
				return nil, x.wrap("list", err)
			}
			if core.ID(s.member).Check() == nil {
				entries = append(entries, core.Entry{ID: core.ID(s.member), Due: due})
			}
			// The last one. Where someone else's fractions stand, which order before ids
			// do, it must not be one from before: that would have no end.
			if ms := due.UnixMilli(); ms > from || ms == from && s.member > id {
				from, id = ms, s.member
			}
		}
		if end := page[len(page)-1]; id != end.member { // such a fraction
			break
		}
	}
	slices.SortFunc(entries, func(a, b core.Entry) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
	})
	return entries, nil
}

func (x *Index) listPage(ctx context.Context, from int64, id string, last int64, count int) ([]scored, error) {
	number := func(ms int64) string { return strconv.FormatInt(ms, 10) }
	args := []any{number(from - 1), number(from), id, number(last), count}
	reply, err := x.run(ctx, x.scripts.list, true, []string{x.names.due}, args)
	if err != nil {
		return nil, err
	}
	return scoreds(reply)
}

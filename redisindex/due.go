package redisindex

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// duePage is how many entries one script reads; reading is cheaper than changing.
const duePage = 1000

// Due implements [core.TimeIndex]: one round trip for each 1,000 entries. It
// changes no entry, but sets junk aside that it comes across.
func (x *Index) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	var due []core.Entry
	var found []junk
	for offset := 0; len(due) < limit || offset == 0; {
		count := min(max(limit-len(due), 0), duePage)
		page, wrong, err := x.duePage(ctx, now, offset, count)
		if err != nil {
			return nil, x.wrap("due", err)
		}
		if offset == 0 {
			found = wrong
		}
		for _, s := range page {
			id := core.ID(s.member)
			if id.Check() != nil {
				found = append(found, junk{member: s.member, now: s.score, found: s.score})
				continue
			}
			at, err := parseDue(s.score)
			if err != nil {
				return nil, x.wrap("due", err)
			}
			due = append(due, core.Entry{ID: id, Due: at})
		}
		offset += len(page)
		if len(page) < count || count == 0 {
			break
		}
	}
	x.setAside(ctx, found)
	// Several pages are no snapshot: an entry may have moved from one into another
	// between the two. And a fraction of a millisecond orders before its id does.
	slices.SortFunc(due, func(a, b core.Entry) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
	})
	seen := make(map[core.ID]struct{}, len(due))
	return slices.DeleteFunc(due, func(e core.Entry) bool {
		_, again := seen[e.ID]
		seen[e.ID] = struct{}{}
		return again
	}), nil
}

func (x *Index) duePage(ctx context.Context, now time.Time, offset, count int) ([]scored, []junk, error) {
	reply, err := x.run(ctx, x.scripts.due, true, []string{x.names.due}, []any{score(now), offset, count, junkAtOnce})
	if err != nil {
		return nil, nil, err
	}
	parts, err := list(reply, 2)
	if err != nil {
		return nil, nil, err
	}
	page, err := scoreds(parts[0])
	if err != nil {
		return nil, nil, err
	}
	wrong, err := scoreds(parts[1])
	return page, wrongScores(wrong), err
}

package naive

import (
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// List implements core.Lister.
func (x *Index) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if x.bug == "list ignores ctx" {
		ctx = context.WithoutCancel(ctx)
	}
	if err := x.enter(ctx, 1); err != nil {
		return nil, unless(x.bug == "broken list is empty", err)
	}
	var theirs []core.Entry
	x.across("list without the queue", func(other *Index) { theirs, _ = other.List(ctx, after, before, limit) })
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	last := before.Add(-time.Millisecond)
	if x.bug == "list includes the bound" {
		last = before
	}
	all := x.first(last, len(x.data.due))
	all = slices.DeleteFunc(all, func(e core.Entry) bool { return !x.isAfter(e, after) })
	if x.bug == "list misses what was taken" {
		all = slices.DeleteFunc(all, func(e core.Entry) bool { return x.data.taken[e.ID] })
	}
	if x.bug == "list in any order" {
		slices.Reverse(all)
	}
	if x.bug == "list loses the first of a second page" && len(all) > 1000 {
		all = slices.Delete(all, 1000, 1001)
	}
	if x.bug != "list ignores the limit" {
		all = all[:min(limit, len(all))]
	}
	if x.bug == "list takes out what it lists" {
		for _, e := range all {
			delete(x.data.due, e.ID)
		}
	}
	return append(all, theirs...), nil
}

// isAfter tells whether e stands after the cursor of a List.
func (x *Index) isAfter(e, after core.Entry) bool {
	switch {
	case x.bug == "list begins where it is to go on" && e == after:
		return true
	case x.bug == "list goes on at the next millisecond" && after.ID != "":
		return e.Due.After(after.Due)
	case x.bug == "list goes on from what is there" && after.ID != "":
		if due, there := x.data.due[after.ID]; !there || !due.Equal(after.Due) {
			return false
		}
	}
	return e.Due.After(after.Due) || e.Due.Equal(after.Due) && e.ID > after.ID
}

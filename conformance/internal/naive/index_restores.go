package naive

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// AddMissing implements core.Restorer.
func (x *Index) AddMissing(ctx context.Context, entries []core.Entry) error {
	if x.bug == "restore ignores ctx" {
		ctx = context.WithoutCancel(ctx)
	}
	if err := x.enter(ctx, len(entries)); err != nil {
		return unless(x.hides(len(entries)) || x.bug == "broken restore succeeds", err)
	}
	if x.bug == "half a restore is a success" && interrupted(ctx, len(entries)) {
		entries = entries[:len(entries)/2]
	}
	if x.bug == "restore cut at 1,024" {
		entries = entries[:min(len(entries), 1024)]
	}
	if x.bug == "restore sorts its argument" {
		slices.SortFunc(entries, func(a, b core.Entry) int { return a.Due.Compare(b.Due) })
	}
	x.across("restore without the queue", func(other *Index) { _ = other.AddMissing(ctx, entries) })
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	head, any := x.head()
	for _, entry := range entries {
		id, due := x.key(entry.ID), x.time(entry.Due)
		there := x.restored(id, due)
		if there && x.bug == "restore stops at a known id" {
			break
		}
		if x.bug == "restore not atomic" {
			x.data.mu.Unlock()
			time.Sleep(10 * time.Microsecond)
			x.data.mu.Lock()
		}
		if !there {
			x.data.due[id] = due
			delete(x.data.taken, id)
		}
	}
	if now, some := x.head(); some && (!any || now.Before(head)) && x.bug != "watch hears no restore" {
		x.tell()
	}
	return nil
}

// restored tells whether an AddMissing of id at due leaves it alone.
func (x *Index) restored(id core.ID, due time.Time) bool {
	old, there := x.data.due[id]
	switch x.bug {
	case "restore does nothing":
		return true
	case "restore overwrites":
		return false
	case "restore keeps the earlier":
		return there && !due.Before(old)
	case "restore keeps the later":
		return there && !due.After(old)
	case "restore misses what was taken":
		return there && !x.data.taken[id]
	case "restore ignores case":
		for other := range x.data.due {
			there = there || strings.EqualFold(string(other), string(id))
		}
	}
	return there
}

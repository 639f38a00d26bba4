package core

import (
	"context"
	"time"
)

// Bounds of what a horizon sweep looks at in the index: what a shop cancels stays there
// for as long as its customers would have had, and a sweep each minute is in no hurry.
const (
	staleLook = 50_000 // entries of one sweep
	stalePage = 5_000  // of one call
)

// ended looks for entries whose tasks have ended: were cancelled where the index could
// not be told, finished by another's hand, or are rows that the user's own statement
// ended. Each would stay until its due time, however far that is, and cost a claim then.
//
// It lists entries before the sweep reads the rows, crosses off those whose rows the
// sweep comes upon, and removes the rest, each only where it still stands. It looks at
// what is farther ahead than any lease: a running task's row is not among those that
// the sweep reads, and its entry stands at the end of its lease. An id that is used
// again meanwhile may lose its entry where the old one stood earlier than the new one
// is due; then that is far ahead too, and the next sweep brings it back.
type ended struct {
	e     *engine
	stand map[ID]time.Time
}

// listFar returns the next part of what stands far ahead, up to the end of what the
// sweep reads. Where the last part was, the engine remembers.
func (e *engine) listFar(ctx context.Context, before time.Time) ended {
	look := ended{e: e}
	l, ok := e.idx.(Lister)
	if !ok {
		return look
	}
	after := Entry{Due: CeilMilli(e.clock.now().Add(e.opt.Lease + time.Minute))}
	if e.far.Due.After(after.Due) {
		after = e.far
	}
	look.stand = make(map[ID]time.Time)
	for len(look.stand) < staleLook && ctx.Err() == nil {
		var page []Entry
		err := e.index.once(ctx, func(ctx context.Context) (err error) {
			page, err = l.List(ctx, after, before, stalePage)
			return err
		})
		if err != nil && ctx.Err() == nil {
			e.tellFailed("index: list", err) // next time; a user who may not list can do without
		}
		if err != nil || len(page) == 0 {
			after = Entry{} // again from the start
			break
		}
		for _, entry := range page {
			look.stand[entry.ID] = entry.Due
		}
		after = page[len(page)-1]
		await(ctx, nil, 10*time.Millisecond)
	}
	e.far = after
	return look
}

// crossOff notes rows that the sweep has read: they are waiting.
func (l ended) crossOff(rows []Entry) {
	for _, row := range rows {
		delete(l.stand, row.ID)
	}
}

// remove takes out what no row was read of, once all were.
func (l ended) remove(ctx context.Context) {
	n := len(l.stand)
	gone := make([]Entry, 0, min(n, horizonPage))
	for id, due := range l.stand {
		gone = append(gone, Entry{ID: id, Due: due})
		if len(gone) == cap(gone) {
			l.e.removeFromIndex(gone)
			gone = gone[:0]
			await(ctx, nil, 10*time.Millisecond)
		}
	}
	l.e.removeFromIndex(gone)
	if n > 0 {
		l.e.log.Debug("dueclaim: removed entries of ended tasks from the index", "entries", n)
	}
}

package core

import (
	"context"
	"time"
)

const (
	purgePage  = 500
	purgeEvery = time.Minute           // between two purges, at most
	purgeGap   = 20 * time.Millisecond // after a full page
	purgeShort = time.Second           // after a short one, at most
)

// purge deletes finished rows that were kept long enough, once a minute, until
// ctx is done.
func (e *engine) purge(ctx context.Context) {
	p, ok := e.store.(Purger)
	if !ok || e.opt.KeepFinished < 0 {
		return
	}
	for ctx.Err() == nil {
		await(ctx, nil, jitter(purgeEvery))
		e.purgeAll(ctx, p)
	}
}

// purgeAll deletes page by page until a page is empty. A short page isn't the last
// one: where several processes purge, each finds rows that others are about to delete
// and passes over them. Then it pauses for longer, so that they part.
func (e *engine) purgeAll(ctx context.Context, p Purger) {
	before := FloorMilli(e.clock.now().Add(-e.opt.KeepFinished)) // once: rows that grow old meanwhile are for the next
	for ctx.Err() == nil {
		n, err := e.purgeOnce(p, before)
		switch {
		case err != nil || n == 0:
			return
		case n < purgePage:
			await(ctx, nil, jitter(purgeShort))
		default:
			await(ctx, nil, purgeGap)
		}
	}
}

func (e *engine) purgeOnce(p Purger, before time.Time) (n int, err error) {
	err = e.call.once(e.base, func(ctx context.Context) (err error) {
		n, err = p.Purge(ctx, before, purgePage)
		return err
	})
	e.health.store("purge", err)
	return n, err
}

package core

import (
	"context"
	"errors"
	"slices"
	"time"
)

// index adds entries within the horizon. After a failure it leaves the index
// alone for a second, so that callers don't all wait for one that is away.
func (p *Producer) index(ctx context.Context, entries []Entry) error {
	if p.opt.Horizon > 0 {
		// By the last reading of the store's clock, of a minute ago or so: a hint needs no
		// newer one, for which a store that hangs would have to be waited for.
		if p.clock.lag() < time.Hour {
			entries = within(entries, p.clock.now().Add(p.opt.Horizon))
		}
	}
	for page := range slices.Chunk(entries, indexPage) {
		err := p.indexOnce(ctx, page, p.idx.Add)
		if err != nil {
			p.obs.notIndexed(len(entries), err)
			p.logIndex(len(entries), err)
			return err
		}
		entries = entries[len(page):]
		p.logIndex(len(page), nil)
	}
	return nil
}

// indexPage is how many entries the index is told of in one call, with a time-out of
// its own: a call for half a million can't be held to the time that one for a few has.
const indexPage = 5000

// unindex removes entries. Those that it can't remove, a horizon sweep does, or they
// cost one claim each when they come due.
func (p *Producer) unindex(ctx context.Context, entries []Entry) {
	for page := range slices.Chunk(entries, indexPage) {
		if err := p.indexOnce(ctx, page, p.idx.Remove); err != nil {
			p.obs.failed("index: remove", err)
			return
		}
	}
}

// indexOnce adds or removes a page of entries, unless the index has failed a moment ago.
func (p *Producer) indexOnce(ctx context.Context, entries []Entry, tell func(context.Context, []Entry) error) error {
	p.mu.Lock()
	skip := p.clock.mono() < p.skipIndex
	p.mu.Unlock()
	if skip {
		return errIndexAway
	}
	// The store has the tasks: a caller who gave up shouldn't make them late.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opt.Timeout/5)
	defer cancel()
	err := tell(ctx, entries)
	if err != nil {
		p.mu.Lock()
		p.skipIndex = p.clock.mono() + time.Second
		p.mu.Unlock()
	}
	return err
}

// logIndex logs the beginning of an outage of the index, how it goes once a minute,
// and its end.
func (p *Producer) logIndex(tasks int, err error) {
	n, tell := p.countUntold(tasks, err)
	switch {
	case !tell: // the log is not called under the lock, as it may block
	case err != nil:
		p.opt.Logger.Warn("dueclaim: index can't be told; the sweeps will find the tasks", "tasks", n, "err", err)
	default:
		p.opt.Logger.Info("dueclaim: index can be told again", "tasks_since_last_line", n)
	}
}

// countUntold counts tasks that the index was told of, or couldn't be, and returns how
// many it couldn't since the last line of the log, and whether another line is due.
func (p *Producer) countUntold(tasks int, err error) (n int, tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		n, tell = p.untold, p.untoldAt > 0
		p.untold, p.untoldAt = 0, 0
		return n, tell
	}
	p.untold += tasks
	now := p.clock.mono()
	if p.untoldAt > 0 && now-p.untoldAt < time.Minute {
		return 0, false
	}
	n, p.untold, p.untoldAt = p.untold, 0, now
	return n, true
}

var errIndexAway = errors.New("index failed less than a second ago and is left alone")

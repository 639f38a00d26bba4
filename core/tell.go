package core

import (
	"context"
	"errors"
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
	if len(entries) == 0 {
		return nil
	}
	p.mu.Lock()
	skip := p.clock.mono() < p.skipIndex
	p.mu.Unlock()
	err := errIndexAway
	if !skip {
		// The store has the tasks: a caller who gave up shouldn't make them late.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opt.Timeout/5)
		defer cancel()
		if err = p.idx.Add(ctx, entries); err != nil {
			p.mu.Lock()
			p.skipIndex = p.clock.mono() + time.Second
			p.mu.Unlock()
		}
	}
	if err != nil {
		p.opt.Observer.notIndexed(len(entries), err)
	}
	p.logIndex(len(entries), err)
	return err
}

// logIndex logs the beginning of an outage of the index, how it goes once a minute,
// and its end.
func (p *Producer) logIndex(tasks int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		if p.untoldAt > 0 {
			p.opt.Logger.Info("dueclaim: index can be told again", "tasks_since_last_line", p.untold)
		}
		p.untold, p.untoldAt = 0, 0
		return
	}
	p.untold += tasks
	now := p.clock.mono()
	if p.untoldAt > 0 && now-p.untoldAt < time.Minute {
		return
	}
	p.opt.Logger.Warn("dueclaim: index can't be told; the sweeps will find the tasks", "tasks", p.untold, "err", err)
	p.untold, p.untoldAt = 0, now
}

var errIndexAway = errors.New("index failed less than a second ago and is left alone")

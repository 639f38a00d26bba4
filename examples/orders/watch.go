package main

import (
	"context"
	"fmt"
	"time"
)

// watch shows how it goes and kills workers. closed tells that all orders and all
// customers have come, or can't.
func (d *demo) watch(ctx context.Context, closed <-chan struct{}) error {
	defer d.show.Done()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	const looks = 200 * time.Millisecond
	// A lease has to run out, a sweep to see it, and where the table keeps no lease
	// it adds one more.
	patience := 2*d.lease + 4*time.Second + 10*time.Second
	began, last, lastChange, open := time.Now(), -1, time.Now(), true
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			closed, open = nil, false
			continue
		case <-tick.C:
		}
		elapsed := time.Since(began)
		if err := d.killSome(elapsed); err != nil {
			return err
		}
		if time.Since(looked) < looks {
			continue
		}
		looked = time.Now()
		counts, err := d.db.counts(ctx)
		if err != nil {
			return err
		}
		live := counts["pending"] + counts["processing"]
		if live != last {
			last, lastChange = live, time.Now()
		}
		d.show.Show(fmt.Sprintf("%s  orders open %d, paid %d, cancelled %d; %d workers",
			d.clock.now().Format("Mon 15:04"), live, d.heard.paidSoFar(), counts["cancelled"], d.team.Len()))
		if !open && live == 0 {
			return nil
		}
		if !open && elapsed > d.length && time.Since(lastChange) > patience {
			return nil // the check tells what is missing
		}
		if err := d.team.Check(); err != nil {
			return err
		}
	}
}

// killSome kills a worker with SIGKILL when it is time for that and one has orders
// in hand, and starts another one, as whoever watches over processes does.
func (d *demo) killSome(elapsed time.Duration) error {
	n := len(d.heard.killed)
	if n == d.kills || elapsed < d.length*time.Duration(n+1)/time.Duration(d.kills+1) {
		return nil
	}
	name, busy := d.heard.busiest()
	if busy == 0 && elapsed < d.length {
		return nil
	}
	if busy == 0 {
		name = d.team.Last()
	}
	d.team.Kill(name)
	d.heard.kill(name)
	d.show.Say(fmt.Sprintf("%s  killed %s in the middle of %d orders", d.clock.now().Format("Mon 15:04"), name, busy))
	return d.team.Add()
}

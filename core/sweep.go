package core

import (
	"context"
	"slices"
	"time"
)

// nearSweep looks into the store for what is due about now, until ctx is done: it
// makes up for entries that the index never got or has lost. It comes at once when
// the index begins to fail.
func (e *engine) nearSweep(ctx context.Context) {
	down := backoff{least: e.opt.NearSweep, most: max(5*time.Second, e.opt.NearSweep)}
	var losses lossWatch
	for ctx.Err() == nil {
		again, err := e.sweepNear(ctx, inFlight)
		if ctx.Err() == nil {
			e.health.sweep("near", err)
		}
		e.lookForLosses(ctx, &losses)
		switch {
		case err != nil:
			await(ctx, nil, down.failed())
			continue
		case again > 0:
			await(ctx, nil, again)
		default:
			ended := e.clock.mono()
			if await(ctx, e.fails, e.opt.NearSweep) { // at once, but for one that stutters
				await(ctx, nil, e.opt.NearSweep/5-(e.clock.mono()-ended))
			}
		}
		down.ok()
	}
}

// sweepNear reads a page, or more where most of it is rows that are to be left
// alone (refused ones must not hide those behind them), and adds to the index
// what is due soon, and what is overdue unless the index has a backlog to offer
// anyhow. Where it has nothing more to offer, what stays overdue for longer is left
// to be claimed directly. again: when to come again, where that is to be soon, as the
// index fails or doesn't offer what is overdue. For a Tick, inFlight is 0: nobody else's
// claims are waited for.
func (e *engine) sweepNear(ctx context.Context, inFlight time.Duration) (again time.Duration, err error) {
	if e.undated {
		return 0, e.sweepUndated(ctx, inFlight)
	}
	offered := e.backlog() // also before the reading: else the rows may be those of its last entries
	now := e.clock.now()
	before := now.Add(2*e.opt.NearSweep + e.opt.Poll)
	var rows []Entry
	full := true
	after, ended := e.sweepFrom(now)
	whole := after.Due.IsZero()
	failed := false
	defer func() { ended(failed && full) }()
	for page := 0; full && page < sweepPages && len(rows) < sweepPage/2; page++ {
		more, err := e.waiting(ctx, after, before, sweepPage)
		if err != nil {
			return 0, err
		}
		if full = len(more) == sweepPage; full {
			after = more[len(more)-1]
		}
		rows = append(rows, e.notInHand(more)...)
	}
	n := len(rows)
	e.mu.Lock()
	offered = offered || e.offered
	failed = e.idxFailed
	e.mu.Unlock()
	var direct []ID
	switch {
	case failed:
		direct = dueBy(rows, now)
		if full {
			again = e.opt.NearSweep / 20
		}
	case !offered:
		direct = dueBy(rows, now.Add(-2*min(e.opt.Poll, e.opt.NearSweep)))
		if inFlight > 0 {
			if len(direct) > 0 {
				again = e.secondLook()
			}
			direct = e.neglected(dueBy(rows, now.Add(-inFlight)), len(direct), whole)
		}
		if len(dueBy(rows, now.Add(-e.opt.Poll/2))) > 0 {
			poke(e.rebuild) // the index should have offered these: it has lost entries
		}
	default:
		e.seen = nil // what is overdue now, others may take any moment
	}
	e.obs.swept(n, len(direct))
	rows = without(rows, direct) // a claimed row needs no entry, or gets one then
	e.setOverdue(direct)         // which is dispatch's from here on
	switch {
	case failed || inFlight == 0:
		e.addToIndex(rows)
	case offered:
		e.addSwept(notBetween(rows, time.Time{}, now), inFlight, false)
	default:
		e.addSwept(notBetween(rows, now.Add(-inFlight), now), inFlight, false)
	}
	return again, nil
}

// secondLook is when a near sweep comes again to see whether overdue rows that the
// index didn't offer are still there.
func (e *engine) secondLook() time.Duration { return min(e.opt.NearSweep/2, 500*time.Millisecond) }

// neglected returns those of the first n of some overdue rows that an earlier near sweep
// has found too: most claims of other processes that were under way at that time have
// ended since. whole: the sweep began at the start of time, so that what it didn't read
// is forgotten.
func (e *engine) neglected(overdue []ID, n int, whole bool) []ID {
	now := e.clock.mono()
	var list []ID
	seen := e.seen
	if whole || seen == nil {
		seen = make(map[ID]time.Duration, len(overdue))
	}
	for i, id := range overdue {
		first, ok := e.seen[id]
		if !ok {
			first = now
		}
		seen[id] = first
		if i < n && now-first >= e.secondLook()/2 {
			list = append(list, id)
		}
	}
	e.seen = seen
	return list
}

// without returns the rows but those of ids, which are in the rows' order.
func without(rows []Entry, ids []ID) []Entry {
	return slices.DeleteFunc(rows, func(row Entry) bool {
		found := len(ids) > 0 && ids[0] == row.ID
		if found {
			ids = ids[1:]
		}
		return found
	})
}

// Bounds of what near sweeps cost where the rows' beginnings are slow to read.
const (
	slowSweep  = 20 * time.Millisecond
	slower     = 4               // times, so that it is the beginnings that are slow
	sweepShare = 20              // of the time, one part at most goes into sweeps from the start
	sweepGap   = 5 * time.Second // between two of those, at most
	recent     = time.Minute     // what the others look at
)

// wholeSweeps says when a near sweep reads from the start of time.
type wholeSweeps struct {
	took time.Duration // by the last one
	next time.Duration // on the monotonic clock
}

// sweepFrom returns where a near sweep begins: at the start of time, or, for a
// while after one that was slow, a minute ago. Where a database can't clean up
// behind what was done long ago (an old snapshot is open), each reading from the
// start walks over all of it. Where it is slow all over, a shorter reading doesn't
// help, and the next one is whole again. ended is to be called after the sweep; busy:
// it found a backlog that only sweeps can serve, so that the next one is to begin
// there too.
//
// See https://github.com/riverqueue/river/issues/59.
func (e *engine) sweepFrom(now time.Time) (after Entry, ended func(busy bool)) {
	began, whole := e.clock.mono(), &e.whole
	if began < whole.next {
		return Entry{Due: CeilMilli(now.Add(-recent))}, func(bool) {
			if slower*(e.clock.mono()-began) > whole.took {
				whole.next = 0
			}
		}
	}
	return Entry{}, func(busy bool) {
		whole.took = e.clock.mono() - began
		if whole.took > slowSweep && !busy {
			whole.next = e.clock.mono() + min(sweepShare*whole.took, sweepGap)
		}
	}
}

// inFlight is how long after its due time a row that still looks unclaimed is
// likely on its way to some process. To add it would bring its entry back from
// the end of its lease, and cost a claim.
const inFlight = 100 * time.Millisecond

// notBetween returns the rows that are not due after a up to b.
func notBetween(rows []Entry, a, b time.Time) []Entry {
	return slices.DeleteFunc(rows, func(row Entry) bool { return row.Due.After(a) && !row.Due.After(b) })
}

// dueBy returns the ids of the rows, ordered by due time, that are due at or
// before t.
func dueBy(rows []Entry, t time.Time) []ID {
	var ids []ID
	for _, row := range rows {
		if row.Due.After(t) {
			break
		}
		ids = append(ids, row.ID)
	}
	return ids
}

// setOverdue leaves ids for dispatch to claim without the index.
func (e *engine) setOverdue(ids []ID) {
	e.mu.Lock()
	e.overdue = ids
	e.mu.Unlock()
	if len(ids) > 0 {
		poke(e.head)
	}
}

// takeOverdue takes up to n of them.
func (e *engine) takeOverdue(n int) []ID {
	e.mu.Lock()
	defer e.mu.Unlock()
	n = min(n, len(e.overdue))
	ids := e.overdue[:n:n]
	e.overdue = e.overdue[n:]
	return ids
}

// horizonSweep pages through all waiting rows within the horizon and adds them to
// the index, at once and again and again, until ctx is done: start-up load,
// repair and, when the index has lost entries, rebuild. What it says that it has
// lost is put back at once, also when it says so during a sweep; where it says so
// again and again, such as two servers behind one address, the pauses grow.
func (e *engine) horizonSweep(ctx context.Context) {
	// From the end of a sweep to a rebuild. It doubles while rebuilds follow each
	// other: what looks lost may be what others schedule at short notice without
	// this index, and a whole reading every few seconds would cost much.
	least, most := min(3*time.Second, e.opt.HorizonSweep/2), e.opt.HorizonSweep/2
	gap := least
	down := backoff{least: e.opt.NearSweep, most: max(10*time.Second, e.opt.NearSweep)}
	storm := lossStorm{calm: min(e.opt.HorizonSweep, time.Minute), pause: backoff{least: least, most: min(most, time.Minute)}}
	repair := false
	e.backlogFirst(ctx)
	for ctx.Err() == nil {
		err := e.sweepHorizon(ctx, repair)
		storm.read(e.clock.mono())
		if ctx.Err() == nil {
			e.health.sweep("horizon", err)
		}
		if err != nil {
			await(ctx, nil, down.failed())
			continue
		}
		down.ok()
		repair = false
		if await(ctx, e.lost, gap) {
			await(ctx, nil, storm.loss(e.clock.mono()))
			continue
		}
		timer := time.NewTimer(e.opt.HorizonSweep - gap)
		select {
		case <-e.lost:
			await(ctx, nil, storm.loss(e.clock.mono()))
		case <-e.rebuild:
			gap = min(2*gap, most)
		case <-timer.C:
			gap, repair = least, true
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// backlogPause is by how much, at most, and by half of that at least, a process that
// starts puts off its first reading where the index has a backlog to work off.
const backlogPause = 4 * time.Second

// backlogFirst waits for the first take, and for a while if it came back full: what a
// reading could add would stand behind that backlog, and of processes that start
// together each would read all of it while the others take it.
func (e *engine) backlogFirst(ctx context.Context) {
	select {
	case <-e.taken:
	case <-ctx.Done():
		return
	}
	if e.backlog() {
		await(ctx, e.lost, min(jitter(backlogPause), e.opt.HorizonSweep))
	}
}

// sweepHorizon reads all, and adds what the index lacks; with repair also what it has
// too late. What it has of ended tasks it takes out, a part with each sweep.
func (e *engine) sweepHorizon(ctx context.Context, repair bool) error {
	before := endDue
	if e.opt.Horizon > 0 {
		before = FloorMilli(e.clock.now().Add(e.opt.Horizon))
	}
	far := e.listFar(ctx, before)
	var after Entry
	for ctx.Err() == nil {
		rows, err := e.waiting(ctx, after, before, horizonPage)
		if err != nil {
			return err
		}
		far.crossOff(rows)
		if len(rows) == 0 {
			break
		}
		last, full := rows[len(rows)-1], len(rows) == horizonPage
		e.addSwept(e.notInHand(rows), inFlight, repair)
		if !full {
			break
		}
		after = last
		await(ctx, nil, 10*time.Millisecond) // leave the backends to others in between
	}
	if ctx.Err() == nil {
		far.remove(ctx)
	}
	return nil
}

// backlog tells whether the index had more to offer than the last take could take.
func (e *engine) backlog() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.offered && !e.idxFailed
}

// waiting reads a page of rows that nobody holds. Reads carry Run's ctx: a
// shutdown may cut them.
func (e *engine) waiting(ctx context.Context, after Entry, before time.Time, limit int) (rows []Entry, err error) {
	now := FloorMilli(e.clock.takeOver().Add(-takeOverGrace))
	before = CeilMilli(before)
	if before.After(endDue) {
		before = endDue
	}
	err = e.call.once(ctx, func(ctx context.Context) (err error) {
		rows, err = e.store.Waiting(ctx, now, after, before, limit)
		return err
	})
	if ctx.Err() == nil {
		e.health.store("waiting", err)
	}
	return rows, err
}

// notInHand drops rows that this process has in hand, and those that the store
// refused to change a while ago.
func (e *engine) notInHand(rows []Entry) []Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.mono()
	kept := rows[:0]
	for _, row := range rows {
		if _, ok := e.hand[row.ID]; ok {
			continue
		}
		if r := e.refusals[row.ID]; r != nil && r.until > now {
			continue
		}
		kept = append(kept, row)
	}
	return kept
}

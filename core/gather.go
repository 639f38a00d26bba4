package core

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

// How calls of Schedule are gathered. A statement for fifty tasks costs a database
// little more than one for one task, and one insert beside another hides the way
// there and back.
const (
	// gatherFrom is how many inserts are in flight when newcomers begin to wait.
	gatherFrom = 2
	// gatherPatience bounds that wait: inserts that hang (on a locked row, on a
	// server that is away) don't hold up calls that have nothing to do with them.
	gatherPatience = 100 * time.Millisecond
	// A call with more has nothing to gain, and others would wait for it.
	gatherTasks, gatherBytes = 100, 256 << 10
)

// gathering is where calls of Schedule wait for a statement to share.
type gathering struct {
	clock *clock
	fly   func(*flight)

	mu       sync.Mutex
	inFlight int // inserts, shared or not
	queue    []*waiter
	flying   map[ID]struct{} // ids of the shared ones
}

// waiter is one call.
type waiter struct {
	ctx   context.Context
	items []Task
	bytes int
	ended chan struct{} // closed when its flight has

	// Set when it is on board, under the lock.
	flight *flight
	from   int // where items begin in the flight's
}

func (g *gathering) init(clock *clock, fly func(*flight)) {
	g.clock, g.fly, g.flying = clock, fly, make(map[ID]struct{})
}

func shareable(items []Task) bool {
	return len(items) <= gatherTasks && bytesOf(items) <= gatherBytes
}

func bytesOf(items []Task) int {
	n := 0
	for i := range items {
		n += taskBytes(items[i])
	}
	return n
}

// enter tells whether a call need not wait. Then it counts as in flight until left
// is called.
func (g *gathering) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inFlight >= gatherFrom || len(g.queue) > 0 {
		return false
	}
	g.inFlight++
	return true
}

// left ends one insert; those who wait are next.
func (g *gathering) left() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	g.launchNext()
}

// join puts a call at the end of the queue.
func (g *gathering) join(ctx context.Context, items []Task) *waiter {
	w := &waiter{ctx: ctx, items: items, bytes: bytesOf(items), ended: make(chan struct{})}
	if ctx.Done() != nil { // it may leave, and the memory is the caller's again, while the statement goes on
		for i := range items {
			items[i].Payload, items[i].Meta = bytes.Clone(items[i].Payload), bytes.Clone(items[i].Meta)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, w)
	g.launchNext() // an insert may have ended since enter
	return w
}

// wait returns w's flight when that has ended or, with the error of w's ctx, when w
// has left it before and its outcome is unknown. Without a flight w has left the
// queue, as its ctx ended or, without an error, its patience.
func (g *gathering) wait(w *waiter) (*flight, error) {
	patience := time.NewTimer(gatherPatience)
	defer patience.Stop()
	for {
		select {
		case <-w.ended:
			g.landed(w.flight)
			return w.flight, nil
		case <-patience.C:
			if g.push(w) {
				return nil, nil
			}
		case <-w.ctx.Done():
			f, early := g.quit(w)
			if f == nil || early {
				return f, w.ctx.Err()
			}
			<-w.ended
			g.landed(f)
			if !f.answered {
				return f, w.ctx.Err()
			}
			return f, nil
		}
	}
}

// push has the queue take off as far as w, however much is in flight. If it still
// waits then, for an id that is in flight, it is taken out of the queue.
func (g *gathering) push(w *waiter) (out bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w.flight == nil && g.launch() {
	}
	if w.flight == nil {
		g.remove(w)
	}
	return w.flight == nil
}

// quit is for w whose ctx has ended: it leaves the queue, or (early) its flight.
// The last one on board stays and has the insert cancelled, so that somebody waits
// for the flight's end; all stay when only the index is left to be told.
func (g *gathering) quit(w *waiter) (f *flight, early bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f = w.flight
	switch {
	case f == nil:
		g.remove(w)
	case f.over:
	case f.aboard > 1:
		f.aboard--
		early = true
	default:
		f.cancel()
	}
	return f, early
}

// inserted is called when a flight's insert has an outcome, or has none for good.
func (g *gathering) inserted(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.over = true
}

// landed is called by each caller who has seen the flight's end. The flight counts
// until the last has: those who came first may be waiting for the next already,
// which then has the more to share.
func (g *gathering) landed(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.aboard--; f.aboard > 0 {
		return
	}
	for i := range f.items {
		delete(g.flying, f.items[i].ID)
	}
	g.inFlight--
	g.launchNext()
}

func (g *gathering) remove(w *waiter) {
	if i := slices.Index(g.queue, w); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
}

// launchNext sends what waits on its way while not enough is in flight. The caller
// holds the lock.
func (g *gathering) launchNext() {
	for g.inFlight < gatherFrom && g.launch() {
	}
}

// launch sends the head of the queue, one page of it, on its way. Nobody overtakes a
// call that no longer fits. Calls with an id that is in flight stay: each would be
// answered by the other's fate, and is to learn it as if it had come after. false:
// there is nobody else. The caller holds the lock.
func (g *gathering) launch() bool {
	f := &flight{}
	size := 0
	var stay []*waiter
	for i, w := range g.queue {
		if len(f.items)+len(w.items) > pageItems || size+w.bytes > pageBytes {
			stay = append(stay, g.queue[i:]...)
			break
		}
		if g.clashes(w.items) {
			stay = append(stay, w)
			continue
		}
		for _, t := range w.items {
			g.flying[t.ID] = struct{}{}
		}
		w.flight, w.from = f, len(f.items)
		f.items = append(f.items, w.items...)
		f.crew = append(f.crew, w)
		size += w.bytes
	}
	if len(f.crew) == 0 {
		return false
	}
	g.queue = stay
	g.inFlight++
	f.aboard = len(f.crew)
	f.call = Call{ID: rand.Text(), Now: FloorMilli(g.clock.now())} // read at most a minute before the first came
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(f.crew[0].ctx))
	go g.fly(f)
	return true
}

func (g *gathering) clashes(items []Task) bool {
	for i := range items {
		if _, ok := g.flying[items[i].ID]; ok {
			return true
		}
	}
	return false
}

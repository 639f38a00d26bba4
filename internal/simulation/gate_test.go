package simulation

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

var (
	errRefused = errors.New("simulation: refused")
	errLost    = errors.New("simulation: reply lost")
	errKilled  = errors.New("simulation: the process is dead")
)

// dice returns the generator that decides about one thing, named by words: so what
// happens to the n-th call of a kind doesn't depend on the order of all others.
func dice(seed uint64, n uint64, words ...string) *rand.Rand {
	h := fnv.New64a()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()+n))
}

// between returns a random duration.
func between(r *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(r.Int64N(int64(b-a)))
}

// gate is what stands between a process and all that is outside of it.
type gate struct {
	w      *world
	name   string
	killed chan struct{} // closed: as by kill -9
	cut    [2]atomic.Int32

	mu      sync.Mutex
	resumed chan struct{} // not nil: stopped, until it is closed
	stopped time.Time     // the last stop, in bubble time
	n       map[string]uint64
}

// What a gate leads to.
const (
	toStore = 0
	toIndex = 1
)

// How a gate is cut off.
const (
	open int32 = iota
	refusing
	silent
	mute // calls take effect, and no reply comes
)

func newGate(w *world, name string) *gate {
	return &gate{w: w, name: name, killed: make(chan struct{}), n: map[string]uint64{}}
}

func (g *gate) dead() bool {
	select {
	case <-g.killed:
		return true
	default:
		return false
	}
}

func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resumed == nil {
		g.resumed, g.stopped = make(chan struct{}), time.Now()
	}
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resumed != nil {
		close(g.resumed)
		g.resumed = nil
	}
}

// wasStopped tells whether the process was stopped at some time since t.
func (g *gate) wasStopped(t time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resumed != nil || g.stopped.After(t)
}

// await holds a stopped process up; true when it was.
func (g *gate) await() (held bool) {
	for {
		g.mu.Lock()
		resumed := g.resumed
		g.mu.Unlock()
		if resumed == nil {
			return held
		}
		held = true
		select {
		case <-resumed:
		case <-g.killed:
			return held
		}
	}
}

func (g *gate) dice(op string) *rand.Rand {
	g.mu.Lock()
	g.n[op]++
	n := g.n[op]
	g.mu.Unlock()
	return dice(g.w.seed, n, "call", g.name, op)
}

// through makes a call of a process to the outside. The effect must own all that it
// touches: it may happen when the caller has long gone.
func through[T any](ctx context.Context, g *gate, to int, op string, effect func(context.Context) (T, error)) (T, error) {
	var none T
	w := g.w
	r := g.dice(op)
	first := r.IntN(2) == 0 // the request was out before the process was stopped
	if !first && g.await() {
		w.count(hang)
	}
	if g.dead() {
		w.count(swallow)
		<-ctx.Done()
		return none, errKilled
	}
	if w.calm.Load() {
		return effect(ctx)
	}
	switch g.cut[to].Load() {
	case refusing:
		w.count(cutOff)
		return none, errRefused
	case silent:
		w.count(cutOff)
		<-ctx.Done()
		return none, ctx.Err()
	case mute:
		w.count(cutOff)
		_, _ = effect(ctx) // there is no reply
		<-ctx.Done()
		return none, ctx.Err()
	}
	s := &w.set
	switch p := r.Float64(); {
	case p < s.refuse:
		w.count(refuse)
		return none, errRefused
	case p < s.refuse+s.late && !(op == "insert" && s.deletes):
		wait := between(r, 100*time.Millisecond, 15*time.Second)
		timed := r.IntN(2) == 0
		own := context.WithoutCancel(ctx)
		w.late.Go(func() {
			time.Sleep(wait)
			_, _ = effect(own) // nobody is there to be told
		})
		if !timed {
			w.count(late)
			return none, errLost
		}
		w.count(lateTimed)
		<-ctx.Done()
		return none, ctx.Err()
	case p < s.refuse+s.late+s.slow:
		w.count(slow)
		if !pause(ctx, between(r, 10*time.Millisecond, 2*time.Second)) {
			return none, ctx.Err()
		}
	}
	got, err := effect(ctx)
	if g.await() {
		w.count(hang)
	}
	if g.dead() {
		w.count(swallow)
		<-ctx.Done()
		return none, errKilled
	}
	if r.Float64() < s.slow/2 {
		w.count(slow)
		if !pause(ctx, between(r, 10*time.Millisecond, 2*time.Second)) {
			w.count(lose)
			return none, ctx.Err()
		}
	}
	if r.Float64() < s.lose {
		w.count(lose)
		return none, errLost
	}
	return got, err
}

// pause sleeps; false when ctx was done before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// slot is a place for a process: when one dies the next takes its place and name.
type slot struct {
	w    *world
	n    int
	gens int
}

// process is one run of a scheduler.
type process struct {
	g      *gate
	cancel context.CancelFunc
	done   chan struct{}
	err    error // when done is closed
	hand   *handCounter
}

// handCounter is a log handler that reads off how many tasks a shutdown found in hand.
type handCounter struct {
	slog.Handler
	mu sync.Mutex
	n  int64
}

func (h *handCounter) Enabled(context.Context, slog.Level) bool { return true }

func (h *handCounter) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "in_hand" {
			h.mu.Lock()
			h.n = a.Value.Int64()
			h.mu.Unlock()
		}
		return true
	})
	return nil
}

func (s *slot) start() *process {
	s.gens++
	// The gate's name tells the generations apart, as its calls are numbered anew.
	g := newGate(s.w, fmt.Sprintf("p%d.%d", s.n, s.gens))
	idx, store := s.w.parts(g)
	p := &process{g: g, done: make(chan struct{}), hand: &handCounter{Handler: slog.DiscardHandler}}
	set := &s.w.set
	sch, err := core.New(idx, store, s.w.handler(g, s.n > 0), core.Options{
		Name: fmt.Sprintf("p%d", s.n), Slots: set.slots, Lease: set.lease, Drain: set.drain, Horizon: set.horizon,
		Backoff: func(failures int) time.Duration { return time.Duration(failures) * 700 * time.Millisecond },
		Logger:  slog.New(p.hand), Observer: core.Observer{Settled: s.w.ledger.told},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		p.err = sch.Run(ctx)
	}()
	return p
}

// kill ends a process as kill -9 does: nothing of it reaches the outside any more.
func (p *process) kill() {
	close(p.g.killed)
	p.cancel()
}

// live is the slot's life while there are faults: processes come and go. It returns
// the last one, which is well.
func (s *slot) live() *process {
	w, r := s.w, dice(s.w.seed, uint64(s.n), "slot")
	p := s.start()
	for {
		time.Sleep(between(r, 300*time.Millisecond, 8*time.Second))
		if w.calm.Load() {
			return p
		}
		switch r.IntN(9) {
		case 0, 1:
			w.count(crash)
			w.note("", "killed", 0, p.g.name)
			p.kill()
			time.Sleep(between(r, 0, 5*time.Second))
			p = s.start()
		case 2:
			w.count(graceful)
			w.note("", "shut down", 0, p.g.name)
			p.cancel()
			<-p.done
			p = s.start()
		case 3, 4, 5:
			d := between(r, 100*time.Millisecond, 3*w.set.lease)
			w.count(stop)
			if d > w.set.lease {
				w.count(stopLong)
			}
			w.note("", "stopped", 0, p.g.name)
			p.g.stop()
			time.Sleep(d)
			p.g.resume()
			w.note("", "continued", 0, p.g.name)
		case 6:
			w.count(cutStore)
			s.cut(p, toStore, refusing+int32(r.IntN(3)), between(r, time.Second, 3*w.set.lease))
		case 7:
			w.count(cutIndex)
			s.cut(p, toIndex, refusing+int32(r.IntN(3)), between(r, time.Second, 10*time.Second))
		case 8: // left alone
		}
	}
}

func (s *slot) cut(p *process, to int, how int32, d time.Duration) {
	s.w.note("", "cut off", int64(to), p.g.name)
	p.g.cut[to].Store(how)
	time.Sleep(d)
	p.g.cut[to].Store(open)
	s.w.note("", "no longer cut off", int64(to), p.g.name)
}

// nemesis does what is done to all at once: to the index and to the store's clock.
func (w *world) nemesis() {
	r := dice(w.seed, 0, "nemesis")
	w.redis.snapshot()
	for {
		time.Sleep(between(r, time.Second, 9*time.Second))
		if w.calm.Load() {
			return
		}
		switch r.IntN(6) {
		case 0:
			w.count(flush)
			w.note("", "index flushed", 0, "")
			w.redis.replace(nil)
		case 1:
			w.redis.snapshot()
		case 2:
			w.count(restore)
			w.note("", "index restored", 0, "")
			w.redis.replace(w.redis.old)
		case 3:
			w.count(rob)
			w.redis.rob(r, 0.5)
		default:
			if !w.set.steps {
				continue
			}
			by := between(r, 500*time.Millisecond, 6*time.Second)
			if r.IntN(2) == 0 {
				w.count(stepBack)
				by = -by
			} else {
				w.count(stepForward)
			}
			w.note("", "clock set by "+by.String(), 0, "")
			w.clock.step(by)
		}
	}
}

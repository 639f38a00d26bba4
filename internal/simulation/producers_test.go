package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// producer schedules, cancels and reschedules.
type producer struct {
	w    *world
	n    int
	r    *rand.Rand
	g    *gate
	prod *core.Producer
	used []core.ID
	open []unknown
}

// unknown is an insertion whose outcome stayed unknown.
type unknown struct {
	call core.Call
	list []core.Task
}

func newProducer(w *world, n int) *producer {
	g := newGate(w, fmt.Sprintf("producer %d", n))
	idx, store := w.parts(g)
	prod, err := core.NewProducer(idx, store, core.ProducerOptions{
		Horizon: w.set.horizon, Timeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	return &producer{w: w, n: n, r: dice(w.seed, uint64(n), "producer"), g: g, prod: prod}
}

// produce works until the faults stop.
func (p *producer) produce() {
	for !p.w.calm.Load() {
		if p.r.IntN(3) == 0 {
			p.resolve()
		}
		switch n := p.r.IntN(10); {
		case n < 6:
			p.schedule()
		case n < 8:
			p.cancel()
		default:
			p.reschedule()
		}
		time.Sleep(between(p.r, 10*time.Millisecond, 2*time.Second))
	}
}

func (p *producer) schedule() {
	var list []core.Task
	seen := map[core.ID]bool{}
	for range 1 + p.r.IntN(4) {
		id := core.ID(fmt.Sprintf("%d-%d", p.n, len(p.used)))
		if len(p.used) > 0 && p.r.IntN(4) == 0 {
			id = p.used[p.r.IntN(len(p.used))] // again, if its task is finished
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		p.used = append(p.used, id)
		list = append(list, p.w.newTask(p.r, id, p.due()))
	}
	call, err := p.prod.NewCall(context.Background())
	if err != nil {
		return // the clock can't be read: nothing was stored
	}
	if p.r.IntN(8) == 0 {
		p.g.cut[toStore].Store(refusing + 2*int32(p.r.IntN(2))) // or mute
		defer p.g.cut[toStore].Store(open)
	}
	p.store(unknown{call, list})
}

// due is now, soon, in an hour, or what a clock says that is wrong by minutes.
func (p *producer) due() time.Time {
	now := p.w.clock.now()
	switch n := p.r.IntN(20); {
	case n < 8:
		return now
	case n < 16:
		return now.Add(between(p.r, 0, 20*time.Second))
	case n < 18:
		return now.Add(time.Hour)
	case p.w.set.equal:
		return now
	default:
		return now.Add(between(p.r, -10*time.Minute, 10*time.Minute))
	}
}

// store makes an insertion and checks what was acknowledged.
func (p *producer) store(u unknown) {
	err := p.prod.ScheduleCall(context.Background(), u.call, u.list...)
	var outcome *core.OutcomeError
	if errors.As(err, &outcome) {
		p.open = append(p.open, u)
		return
	}
	var batch *core.BatchError
	refused := map[core.ID]bool{}
	if errors.As(err, &batch) {
		for _, item := range batch.Items {
			refused[item.ID] = true
		}
	} else if err != nil {
		p.w.fail("", "schedule: %v", err)
		return
	}
	for _, t := range u.list {
		if !refused[t.ID] && !p.w.ledger.stored(t.ID, u.call.ID) {
			p.w.fail(t.ID, "acknowledged and not stored")
		}
	}
}

// resolve repeats what stayed unknown.
func (p *producer) resolve() {
	again := p.open
	p.open = nil
	for _, u := range again {
		found := unknownLost
		if p.w.ledger.stored(u.list[0].ID, u.call.ID) {
			found = unknownStored
		}
		p.w.count(found)
		p.store(u)
	}
}

func (p *producer) pick() (core.ID, bool) {
	if len(p.used) == 0 {
		return "", false
	}
	return p.used[p.r.IntN(len(p.used))], true
}

func (p *producer) cancel() {
	id, ok := p.pick()
	if !ok {
		return
	}
	_, _ = p.prod.Cancel(context.Background(), id) // the ledger sees what it did
}

func (p *producer) reschedule() {
	id, ok := p.pick()
	if !ok {
		return
	}
	_ = p.prod.Reschedule(context.Background(), core.Move{ID: id, To: p.due()}) // refused where it isn't pending
}

// hasten brings what is due in the far future near.
func (p *producer) hasten() {
	now := p.w.clock.now()
	for _, t := range p.w.ledger.pending() {
		if due := claim.Time(t.Due); due.After(now.Add(20 * time.Second)) {
			err := p.prod.Reschedule(context.Background(), core.Move{ID: t.ID, To: now.Add(between(p.r, 0, 10*time.Second))})
			if err != nil && !errors.Is(err, core.ErrNotPending) {
				p.w.fail(t.ID, "reschedule without faults: %v", err)
			}
		}
	}
}

package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var errPlanned = errors.New("simulation: planned failure")

// plan is what the handler of a task does.
type plan struct {
	kind  string
	fails int           // how many attempts fail before one succeeds
	takes time.Duration // how long an attempt takes
}

// newTask makes up a task and remembers its plan under its payload.
func (w *world) newTask(r *rand.Rand, id core.ID, due time.Time) core.Task {
	lease := w.set.lease
	p := plan{takes: between(r, 0, 200*time.Millisecond)}
	t := core.Task{ID: id, Due: due}
	switch n := r.IntN(20); {
	case n < 8:
		p.kind = "ok"
	case n < 11:
		p.kind, p.fails = "retry", 1+r.IntN(3)
	case n < 12:
		p.kind, p.fails = "panic", 1
	case n < 14:
		p.kind, p.fails = "retry at", 1
	case n < 15:
		p.kind = "dead"
	case n < 16:
		p.kind, p.fails = "hopeless", 100
		t.MaxAttempts = 2
	case n < 18:
		p.kind, p.takes = "long", between(r, lease, 3*lease)
	case n < 19:
		p.kind, p.takes = "deaf", between(r, lease/2, 2*lease)
	default:
		p.kind = "stranger" // to one of the processes
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Kind, t.Payload = p.kind, []byte(strconv.Itoa(len(w.plans)))
	w.plans[string(t.Payload)] = p
	w.counts[tasks]++
	return t
}

// run is a handler at work.
type run struct {
	token int64
	g     *gate
	deaf  bool
	life  *life
	began time.Time
}

// began notes a run and classifies its overlap with others of the same id.
func (w *world) startRun(g *gate, job *core.Job, p plan) *run {
	l := w.ledger.start(job)
	if l == nil {
		return nil
	}
	this := &run{job.Grant.Token, g, p.kind == "deaf", l, time.Now()}
	id := job.Grant.ID
	w.note(id, "started: "+p.kind, this.token, g.name)
	w.count(runs)
	w.mu.Lock()
	others := slices.Clone(w.active[id])
	w.active[id] = append(w.active[id], this)
	w.mu.Unlock()
	for _, other := range others {
		var why kind
		switch {
		case other.g.dead():
			continue
		case other.life != l:
			why = overlapReused
		case other.deaf:
			why = overlapDeaf
		case other.g.wasStopped(other.began.Add(-3 * w.set.lease)):
			why = overlapStopped
		case w.clock.set(other.began):
			why = overlapStep
		default:
			why = overlapOther
			w.fail(id, "token %d runs beside token %d, whose handler heeds its context", this.token, other.token)
		}
		w.count(why)
	}
	return this
}

func (w *world) endRun(id core.ID, this *run) {
	w.note(id, "returned", this.token, this.g.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[id] = slices.DeleteFunc(w.active[id], func(r *run) bool { return r == this })
}

// handler returns a process's handler; one process doesn't know strangers.
func (w *world) handler(g *gate, knowsAll bool) core.Handler {
	return core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		if g.dead() {
			return errKilled
		}
		w.mu.Lock()
		p, ok := w.plans[string(job.Task.Payload)]
		w.mu.Unlock()
		if !ok || p.kind != job.Task.Kind {
			w.fail(job.Grant.ID, "payload %q and kind %q don't belong together", job.Task.Payload, job.Task.Kind)
		}
		this := w.startRun(g, job, p)
		if this == nil {
			return errPlanned
		}
		defer w.endRun(job.Grant.ID, this)
		if p.kind == "stranger" && !knowsAll {
			return core.ErrUnknownKind
		}
		if err := g.work(ctx, p); err != nil {
			return err
		}
		return p.end(job)
	})
}

// work takes the time that the plan says, longer where the process is stopped.
func (g *gate) work(ctx context.Context, p plan) error {
	heed := ctx.Done()
	if p.kind == "deaf" {
		heed = nil
	}
	timer := time.NewTimer(p.takes)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-heed:
		err = ctx.Err()
	case <-g.killed:
		err = errKilled
	}
	g.await()
	if g.dead() {
		return errKilled
	}
	return err
}

// end is what the handler returns.
func (p plan) end(job *core.Job) error {
	if p.kind == "dead" {
		return core.Dead(errPlanned)
	}
	if job.Failures() >= p.fails {
		return nil
	}
	switch p.kind {
	case "panic":
		panic(errPlanned)
	case "retry at":
		return core.RetryAt(job.Now().Add(time.Duration(1+len(job.Task.ID))*time.Second), errPlanned)
	default:
		return errPlanned
	}
}

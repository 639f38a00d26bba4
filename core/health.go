package core

import (
	"log/slog"
	"sync"
	"time"
)

// Health is what a Scheduler knows about its backends.
type Health struct {
	Store, Index PartHealth
}

// PartHealth is the state of one backend.
type PartHealth struct {
	// OK: no kind of call (take, claim, settle, …) failed when it was last made.
	// It is true before the first call.
	OK bool
	// Since is the process time of the last change of OK, zero if it never
	// changed.
	Since time.Time
	// Err is the newest failure while OK is false.
	Err error
}

// healthBook keeps the health and tells of changes.
type healthBook struct {
	log *slog.Logger
	obs *Observer

	mu     sync.Mutex
	storeP part
	indexP part
}

// part is one backend's state: a database that reads but doesn't write is not
// well because a read succeeded, so each operation counts for itself.
type part struct {
	PartHealth
	failing map[string]time.Time // by operation: when it last failed
}

// staleFailure is how long a failed operation that nobody repeats is held against
// a backend that answers others.
const staleFailure = 30 * time.Second

func newHealthBook(log *slog.Logger, obs *Observer) *healthBook {
	b := &healthBook{log: log, obs: obs}
	for _, p := range []*part{&b.storeP, &b.indexP} {
		p.OK, p.failing = true, make(map[string]time.Time)
	}
	return b
}

func (b *healthBook) get() Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health()
}

func (b *healthBook) health() Health {
	return Health{Store: b.storeP.PartHealth, Index: b.indexP.PartHealth}
}

func (b *healthBook) store(op string, err error) { b.note("store", op, err, &b.storeP) }
func (b *healthBook) index(op string, err error) { b.note("index", op, err, &b.indexP) }

// note records the result of a call. Answers about items are no failures of the
// backend.
func (b *healthBook) note(name, op string, err error, p *part) {
	if answered(err) {
		err = nil
	}
	if err != nil {
		b.obs.failed(name+": "+op, err)
	}
	b.mu.Lock()
	changed := p.note(op, err)
	h := b.health()
	b.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		b.log.Warn("dueclaim: "+name+" failing; going on with back-off", "op", op, "err", err)
	} else {
		b.log.Info("dueclaim: " + name + " answers again")
	}
	b.obs.health(h)
}

func (p *part) note(op string, err error) (changed bool) {
	was := p.OK
	switch {
	case err != nil:
		p.failing[op] = time.Now()
		p.OK, p.Err = false, err
	case !p.OK:
		delete(p.failing, op)
		for other, last := range p.failing {
			if time.Since(last) > staleFailure {
				delete(p.failing, other)
			}
		}
		if p.OK = len(p.failing) == 0; p.OK {
			p.Err = nil
		}
	}
	if changed = was != p.OK; changed {
		p.Since = time.Now()
	}
	return changed
}

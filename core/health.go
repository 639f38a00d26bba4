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
	// OK: the last call succeeded. It is true before the first call.
	OK bool
	// Since is the process time of the last change of OK, zero if it never
	// changed.
	Since time.Time
	// Err is the newest failure while OK is false.
	Err error
}

// healthBook keeps the health and tells of changes.
type healthBook struct {
	mu  sync.Mutex
	h   Health
	log *slog.Logger
	obs *Observer
}

func newHealthBook(log *slog.Logger, obs *Observer) *healthBook {
	return &healthBook{h: Health{Store: PartHealth{OK: true}, Index: PartHealth{OK: true}}, log: log, obs: obs}
}

func (b *healthBook) get() Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.h
}

func (b *healthBook) store(op string, err error) { b.note("store", op, err, &b.h.Store) }
func (b *healthBook) index(op string, err error) { b.note("index", op, err, &b.h.Index) }

// note records the result of a call. Answers about items are no failures of the
// backend.
func (b *healthBook) note(part, op string, err error, p *PartHealth) {
	if answered(err) {
		err = nil
	}
	if err != nil {
		b.obs.failed(part+": "+op, err)
	}
	b.mu.Lock()
	changed := p.OK != (err == nil)
	p.Err = err
	if changed {
		p.OK, p.Since = err == nil, time.Now()
	}
	h := b.h
	b.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		b.log.Warn("dueclaim: "+part+" failing; going on with back-off", "op", op, "err", err)
	} else {
		b.log.Info("dueclaim: " + part + " answers again")
	}
	b.obs.health(h)
}

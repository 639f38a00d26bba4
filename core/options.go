package core

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// takeOverGrace is how long after the end of a lease others leave it alone: room
// for a heartbeat that is late, for clocks that disagree by what a reading's
// travel takes, and for the holder's own cancelled handler to return.
const takeOverGrace = 2 * time.Second

// Options sets a Scheduler up. The zero value of each field stands for its
// default.
type Options struct {
	// Name says in the claim store who holds a task; printable ASCII, cut to 32
	// bytes. Default: host name and process id. It need not be unique.
	Name string
	// Slots is how many tasks the process has in hand at once: running, or
	// claimed and about to start. Default 100.
	Slots int
	// Ahead is how long before its due time a task may be claimed, so that it
	// starts on the dot by a local timer. Cancel sees such a task as running.
	// Default 50 ms; negative: not ahead.
	Ahead time.Duration
	// Poll is the longest sleep between two looks into the index. Default 1 s.
	Poll time.Duration
	// Lease is how long a claim holds without a heartbeat. A task of a crashed
	// process is taken over 2 s after its lease ended. Default 30 s, or what a store
	// with a [FixedLease] says; at least 500 ms.
	Lease time.Duration
	// NearSweep is the time between two looks into the store for what is due
	// about now. Default 1 s.
	NearSweep time.Duration
	// HorizonSweep is the time between two readings of all waiting rows, from the
	// end of one to the start of the next. Default 60 s.
	HorizonSweep time.Duration
	// Horizon is how far ahead tasks are put into the index; later ones stay in
	// the store alone until a horizon sweep. At least twice HorizonSweep.
	// Default: unbounded.
	Horizon time.Duration
	// Drain is how long handlers may go on after Run's ctx is done before their
	// contexts are cancelled. Default 30 s; negative: not at all.
	Drain time.Duration
	// MaxAttempts is how many failures a task may have when its own MaxAttempts
	// is 0. Default 25.
	MaxAttempts int
	// MaxCrashes is how many times a task's lease may run out before the task is
	// dead, so that one that kills its worker doesn't go round for ever.
	// Default 10.
	MaxCrashes int
	// Backoff returns how long after a failure a task is due again; failures
	// counts them, from 1. A call that panics counts as the default; one that blocks
	// holds up the result of that task, which keeps its slot. Default: a random time up to
	// 1 s, 2 s, 4 s … 1 h.
	Backoff func(failures int) time.Duration
	// KeepFinished is how long done and cancelled tasks are kept, where the store
	// keeps and purges them. Default 24 h; negative: this process doesn't purge.
	KeepFinished time.Duration
	// Logger gets what an operator should know. Lines that its handler panics over are
	// lost, which is said on the standard error once; one that blocks holds up whatever
	// had something to say, but no heartbeat. Default slog.Default().
	Logger *slog.Logger
	// Observer is told what happens.
	Observer Observer
}

// withDefaults returns o with each zero field replaced, or an error (ErrInvalid)
// that names the field that can't be.
func (o Options) withDefaults() (Options, error) {
	o.Name = asciiName(cmp.Or(o.Name, processName()))
	o.Slots = cmp.Or(o.Slots, 100)
	o.Ahead = offOr(o.Ahead, 50*time.Millisecond)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.NearSweep = cmp.Or(o.NearSweep, time.Second)
	o.HorizonSweep = cmp.Or(o.HorizonSweep, time.Minute)
	o.Drain = offOr(o.Drain, 30*time.Second)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 25)
	o.MaxCrashes = cmp.Or(o.MaxCrashes, 10)
	o.KeepFinished = cmp.Or(o.KeepFinished, 24*time.Hour)
	o.Logger = guardedLogger(cmp.Or(o.Logger, slog.Default()), lastResort)
	if o.Backoff == nil {
		o.Backoff = fullJitter
	}

	for _, c := range []struct {
		field string
		got   time.Duration
		least time.Duration
	}{
		{"Poll", o.Poll, time.Millisecond},
		{"Lease", o.Lease, 500 * time.Millisecond},
		{"NearSweep", o.NearSweep, 10 * time.Millisecond},
		{"HorizonSweep", o.HorizonSweep, 10 * time.Millisecond},
	} {
		if c.got < c.least {
			return o, fmt.Errorf("%w: Options.%s is %v, want at least %v, or 0 for the default", ErrInvalid, c.field, c.got, c.least)
		}
	}
	switch {
	case o.Slots < 1:
		return o, fmt.Errorf("%w: Options.Slots is %d, want at least 1, or 0 for the default", ErrInvalid, o.Slots)
	case o.MaxAttempts < 1:
		return o, fmt.Errorf("%w: Options.MaxAttempts is %d, want at least 1, or 0 for the default", ErrInvalid, o.MaxAttempts)
	case o.MaxCrashes < 1:
		return o, fmt.Errorf("%w: Options.MaxCrashes is %d, want at least 1, or 0 for the default", ErrInvalid, o.MaxCrashes)
	case o.Horizon < 0 || o.Horizon > 0 && o.Horizon < 2*o.HorizonSweep:
		return o, fmt.Errorf("%w: Options.Horizon is %v, want at least twice HorizonSweep (%v), or 0 for unbounded", ErrInvalid, o.Horizon, o.HorizonSweep)
	case o.Ahead > o.Lease/4:
		return o, fmt.Errorf("%w: Options.Ahead is %v, want at most a quarter of the lease (%v)", ErrInvalid, o.Ahead, o.Lease)
	}
	return o, nil
}

// offOr returns def for 0 and 0 for a negative d.
func offOr(d, def time.Duration) time.Duration { return max(0, cmp.Or(d, def)) }

// fullJitter is the default back-off: between nothing and an exponential bound,
// which keeps tasks that failed together from coming back together.
func fullJitter(failures int) time.Duration {
	const base, most = time.Second, time.Hour
	bound := most
	if n := failures - 1; n < 12 { // 2^12 s is past an hour
		bound = min(most, base<<max(0, n))
	}
	return rand.N(bound) + 1
}

func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%.20s-%d", host, os.Getpid())
}

// asciiName makes s safe as the start of a Lease.Holder.
func asciiName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 32)]
}

package conformance

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// ErrInjected is the error of a call that a Faults made fail, or whose reply it
// lost. Like any error of a backend it means: outcome unknown.
var ErrInjected = errors.New("conformance: injected fault")

// Fault is one kind of misbehaviour of a backend.
type Fault string

// The kinds of faults.
const (
	// FaultFail: the call fails and nothing reaches the backend.
	FaultFail Fault = "fail"
	// FaultLose: the call takes effect, its reply is lost.
	FaultLose Fault = "lose the reply"
	// FaultTwice: the call is done twice in a row, as by a client library that
	// repeats it; the caller sees the second reply.
	FaultTwice Fault = "do it twice"
	// FaultDelay: the call begins late.
	FaultDelay Fault = "delay"
	// FaultLoseEntry: an index entry that was added is not there, or one that was
	// taken is handed out to nobody.
	FaultLoseEntry Fault = "lose an entry"
	// FaultDoubleEntry: an index entry that was taken is there to be taken again
	// at once, or one that was removed stays.
	FaultDoubleEntry Fault = "double an entry"
)

// FaultOptions says how often a Faults injects what. Each share is between 0
// (never, the zero value) and 1 (always).
type FaultOptions struct {
	// Seed chooses the faults; calls in the same order meet the same ones.
	Seed uint64
	// Shares of the calls.
	Fail, Lose, Twice, Delay float64
	// MaxDelay bounds a delay. Default 20 ms.
	MaxDelay time.Duration
	// Shares of the index entries.
	LoseEntry, DoubleEntry float64
	// Capabilities that the wrapped part has and that shall not be seen.
	HideTaker, HideWatcher, HideRestorer, HideDetector, HideLister, HideTimeSource, HidePurger bool
}

// Faults injects faults into the indexes and claimers that are wrapped with it,
// until it is stopped. It counts what it injected: a test should check that it
// met the faults that it is about. It may be used concurrently.
type Faults struct {
	opt FaultOptions

	mu       sync.Mutex
	rand     *rand.Rand
	stopped  bool
	injected map[Fault]int
}

// NewFaults returns a Faults that is at work.
func NewFaults(opt FaultOptions) *Faults {
	if opt.MaxDelay <= 0 {
		opt.MaxDelay = 20 * time.Millisecond
	}
	return &Faults{opt: opt, rand: rand.New(rand.NewPCG(opt.Seed, 0)), injected: map[Fault]int{}}
}

// Stop ends the faults: from now on every call goes straight through. Hidden
// capabilities stay hidden.
func (f *Faults) Stop() { f.set(true) }

// Start has the faults go on after a Stop.
func (f *Faults) Start() { f.set(false) }

func (f *Faults) set(stopped bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = stopped
}

// Injected returns how many faults of each kind there were so far.
func (f *Faults) Injected() map[Fault]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.injected)
}

// strikes says whether a fault of this kind is due now, and counts it.
func (f *Faults) strikes(kind Fault, share float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped || share <= 0 || f.rand.Float64() >= share {
		return false
	}
	f.injected[kind]++
	return true
}

// delayed waits where a delay is due; its error is that of ctx.
func (f *Faults) delayed(ctx context.Context) error {
	if !f.strikes(FaultDelay, f.opt.Delay) {
		return nil
	}
	f.mu.Lock()
	wait := time.Duration(f.rand.Int64N(int64(f.opt.MaxDelay)))
	f.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call passes one call on, with the faults that are due. An answer that call
// returns beside its error must be dropped where faulty returns ErrInjected.
func (f *Faults) call(ctx context.Context, call func() error) error {
	if err := f.delayed(ctx); err != nil {
		return err
	}
	if f.strikes(FaultFail, f.opt.Fail) {
		return ErrInjected
	}
	err := call()
	if f.strikes(FaultTwice, f.opt.Twice) {
		err = call()
	}
	if f.strikes(FaultLose, f.opt.Lose) {
		return ErrInjected
	}
	return err
}

// spare returns the entries but for those that get lost.
func spare[T any](f *Faults, list []T) []T {
	kept := make([]T, 0, len(list))
	for _, v := range list {
		if !f.strikes(FaultLoseEntry, f.opt.LoseEntry) {
			kept = append(kept, v)
		}
	}
	return kept
}

// single returns the entries but for those whose removal is forgotten.
func single(f *Faults, list []core.Entry) []core.Entry {
	kept := make([]core.Entry, 0, len(list))
	for _, v := range list {
		if !f.strikes(FaultDoubleEntry, f.opt.DoubleEntry) {
			kept = append(kept, v)
		}
	}
	return kept
}

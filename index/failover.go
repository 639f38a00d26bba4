package index

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// ErrOnBackup is what [core.Detector.Generation] of a Failover returns, beside the
// name, while it works on its backup; it wraps what the primary last failed with.
// Health shows it.
var ErrOnBackup = errors.New("index: the primary fails, working on the backup")

const (
	callTime  = time.Second      // of a call that is this package's own
	leastWait = time.Second      // before a primary that fails is tried again
	mostWait  = 30 * time.Second // also where it fails again and again
	calm      = time.Minute      // after so long without a failure waits are short again
	pageSize  = 256              // entries that one call brings back
)

// Failover returns an index that works on primary, and on backup while primary
// fails: it can't be reached, doesn't answer in time, or refuses (for Redis
// READONLY, LOADING, OOM, CLUSTERDOWN, …). Any error of the primary counts, but
// core.ErrInvalid and the cancelling of the caller's ctx. It goes back by itself:
// while a scheduler runs, the primary is tried again each second, or up to 30 s
// apart where it keeps failing soon after; what stands in the backup is brought to
// it then.
//
// The backup is this process's own, usually a heapindex.New(). It is empty while
// the primary is well. When it is needed, the scheduler's sweeps fill it: the
// result is a core.Detector, whose generation changes with each switch, so that all
// waiting tasks within the scheduler's Horizon are read into it at once. It needs
// memory for them. Each process then comes upon every task, and the claim store
// decides; that costs claims in vain, no more.
//
// The Take or Due that finds the primary failing returns the error, for the
// scheduler to look into the store at once; a write that does so goes to the backup
// and succeeds. A Take of which only the reply was lost, as a primary that is a
// core.Lister tells at once, is no failure.
//
// The result is a core.Taker and a core.Restorer where both parts are. It is a
// core.Watcher, whose Watch also looks after the primary: without it, as in a
// process that only produces, a call now and then tries. Give such a process the
// primary alone: other processes' sweeps find its tasks, while here they would stay in
// the backup, more and more of them, until the primary is back.
// The error is core.ErrInvalid, where a part is nil.
func Failover(primary, backup core.TimeIndex) (core.TimeIndex, error) {
	if primary == nil || backup == nil {
		return nil, fmt.Errorf("index: failover: %w: the primary or the backup is nil; want two indexes, such as a redisindex and heapindex.New()", core.ErrInvalid)
	}
	f := &failover{primary: primary, backup: backup, wait: leastWait, suspect: make(chan struct{}, 1)}
	return f.withCapabilities(), nil
}

type failover struct {
	primary, backup core.TimeIndex
	watches         atomic.Int32 // calls of Watch that look after the primary
	suspect         chan struct{}
	returning       sync.Mutex // held by who brings entries back

	mu       sync.Mutex
	away     bool  // the primary fails
	cause    error // why
	switches int
	failedAt time.Time // the last switch to the backup
	backAt   time.Time // the last return
	triedAt  time.Time
	wait     time.Duration
	leftover bool   // the backup may have entries
	told     string // the primary's own generation, as it last said
}

// call makes a call on the part that is at work. It tells whether that was the
// primary, and it failed: then all that follows goes to the backup.
func (f *failover) call(ctx context.Context, do func(context.Context, core.TimeIndex) error) (failed bool, err error) {
	if err := ctx.Err(); err != nil { // says nothing about any part
		return false, fmt.Errorf("index: failover: %w", err)
	}
	primary, try, turn := f.route()
	if !primary {
		defer f.usedBackup()
		return false, do(ctx, f.backup)
	}
	err = do(ctx, f.primary)
	switch {
	case isFailure(ctx, err):
		f.fail(turn, err)
		return true, err
	case err == nil:
		f.well(ctx, try)
	}
	return false, err
}

// write is call for a write, which the backup gets when the primary fails.
func (f *failover) write(ctx context.Context, do func(context.Context, core.TimeIndex) error) error {
	failed, err := f.call(ctx, do)
	if !failed {
		return err
	}
	ctx, cancel := own(ctx)
	defer cancel()
	defer f.usedBackup()
	return do(ctx, f.backup)
}

// usedBackup notes the end of a call on the backup. It may have begun before the
// return to the primary, and put something there that nobody has brought back.
func (f *failover) usedBackup() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leftover = true
}

// own returns a ctx for a call that the caller's time has run out for.
func own(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callTime)
}

// isFailure tells whether err is the primary's fault.
func isFailure(ctx context.Context, err error) bool {
	return err != nil && !errors.Is(err, core.ErrInvalid) && !errors.Is(ctx.Err(), context.Canceled)
}

// route says where a call goes: to the primary where that is well, or where nobody
// looks after it and it is time for a try. turn is for fail.
func (f *failover) route() (primary, try bool, turn int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	try = f.away && f.watches.Load() == 0 && f.timeForTry()
	return !f.away || try, try, f.switches
}

// timeForTry tells whether it is time to try a primary that fails, and counts that
// as a try. The caller holds the lock.
func (f *failover) timeForTry() bool {
	if time.Since(f.triedAt) < f.wait {
		return false
	}
	f.triedAt = time.Now()
	return true
}

// fail notes that a call on the primary failed that began at the given turn; one
// from before the last switch says nothing about now.
func (f *failover) fail(turn int, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if turn != f.switches {
		return
	}
	f.cause, f.triedAt = cause, time.Now()
	if f.away {
		return
	}
	f.wait = min(2*f.wait, mostWait)
	if time.Since(f.backAt) > calm {
		f.wait = leastWait
	}
	f.away, f.leftover = true, true
	f.failedAt = time.Now()
	f.switches++
}

// goBack makes the primary the one at work. The caller holds the lock.
func (f *failover) goBack() {
	if f.away {
		f.away, f.backAt = false, time.Now()
		f.switches++
	}
}

// well notes that the primary answered a call, which was a try perhaps.
func (f *failover) well(ctx context.Context, try bool) {
	f.mu.Lock()
	if try {
		f.goBack()
	}
	bring := f.leftover && f.watches.Load() == 0
	f.mu.Unlock()
	if bring { // else Watch does it, all at once
		f.bringBack(ctx, 1)
	}
}

// Add implements [core.TimeIndex].
func (f *failover) Add(ctx context.Context, entries []core.Entry) error {
	return f.write(ctx, func(ctx context.Context, x core.TimeIndex) error { return x.Add(ctx, entries) })
}

// Move implements [core.TimeIndex].
func (f *failover) Move(ctx context.Context, moves []core.Move) error {
	return f.write(ctx, func(ctx context.Context, x core.TimeIndex) error { return x.Move(ctx, moves) })
}

// Remove implements [core.TimeIndex].
func (f *failover) Remove(ctx context.Context, entries []core.Entry) error {
	return f.write(ctx, func(ctx context.Context, x core.TimeIndex) error { return x.Remove(ctx, entries) })
}

// Due implements [core.TimeIndex].
func (f *failover) Due(ctx context.Context, now time.Time, limit int) (due []core.Entry, err error) {
	_, err = f.call(ctx, func(ctx context.Context, x core.TimeIndex) (err error) {
		due, err = x.Due(ctx, now, limit)
		return err
	})
	return due, err
}

package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// workerRole is the variable that makes a test binary a worker.
const workerRole = "DUECLAIM_FLEET_WORKER"

// Orders are what a worker process reads from its standard input; it ends when
// that is closed, or by SIGTERM. Zero values are the scheduler's defaults.
type Orders struct {
	At           Place
	Name         string
	Slots        int
	Ahead        time.Duration
	Poll         time.Duration
	Lease        time.Duration
	NearSweep    time.Duration
	HorizonSweep time.Duration
	// Drain is the scheduler's, 10 s by default.
	Drain time.Duration
	// MaxCrashes is the scheduler's.
	MaxCrashes int
	// Work says for each kind how long its handler works, deaf to its ctx, or
	// UntilCancelled. Each handler then reports success.
	Work map[string]time.Duration
	// Ends has it say Returned when a handler returns, for an audit of overlaps.
	Ends bool
	// DieInClaim has it kill itself between index and store, with its first claim.
	// Not on SQLite.
	DieInClaim bool
	// Quiet keeps the scheduler's log, of errors, from standard error.
	Quiet bool
}

// UntilCancelled is the work of a handler that waits for the end of its ctx.
const UntilCancelled time.Duration = -1

// Event is one line of a worker's standard output.
type Event struct {
	What     string // one of the constants below
	ID       core.ID
	Token    int64
	Attempt  int // as core.Job has it, like the next two
	Crashes  int
	Failures int
	Due      int64 // ms since 1970
	At       int64 // µs since 1970
	Lost     bool  // Settled: refused with ErrLeaseLost; Cancelled: because of it
	N        int   // Dying: the ids of the claim
	Text     string
}

// What a worker says.
const (
	Ready     = "ready"
	Started   = "started"
	Cancelled = "cancelled" // a handler's ctx, seen by the handler
	Returned  = "returned"  // a handler, where Orders.Ends asks for it
	Settled   = "settled"   // a completion, accepted or refused
	GivenBack = "givenBack" // any other outcome
	LeaseLost = "leaseLost" // as the scheduler says it
	Failed    = "failed"    // a call to a backend; Text is "index: take: why"
	Dying     = "dying"     // where Orders.DieInClaim asks for it
	Ended     = "ended"
)

// Lateness is how long after its due time a started task began.
func (e Event) Lateness() time.Duration {
	return time.UnixMicro(e.At).Sub(time.UnixMilli(e.Due))
}

// Completed says whether this is a completion that the store has accepted.
func (e Event) Completed() bool {
	return e.What == Settled && !e.Lost && e.Text == core.Done.String() // else the text is an error
}

// work is a worker's main.
func work(stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReader(stdin)
	var o Orders
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	p, err := Open(ctx, o.At)
	if err != nil {
		return err
	}
	r := &reporter{out: json.NewEncoder(stdout), ends: o.Ends}
	var mux core.Mux
	for kind, d := range o.Work {
		mux.Register(kind, handler(r, d))
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if o.Quiet {
		log = slog.New(slog.DiscardHandler)
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	var store core.Store = p.Store
	if o.DieInClaim {
		store = dying{p.Store, p.Clock, r}
	}
	s, err := core.New(p.Index, store, &mux, core.Options{
		Name: o.Name, Slots: o.Slots, Ahead: o.Ahead, Poll: o.Poll, Lease: o.Lease, NearSweep: o.NearSweep, HorizonSweep: o.HorizonSweep,
		Drain: o.Drain, MaxCrashes: o.MaxCrashes, Logger: log, Observer: observer(r),
	})
	if err != nil {
		return err
	}
	r.say(Event{What: Ready})
	err = s.Run(ctx)
	r.say(Event{What: Ended})
	return errors.Join(err, p.Shut())
}

func handler(r *reporter, d time.Duration) core.HandlerFunc {
	return func(ctx context.Context, job *core.Job) error {
		r.job(Started, job, false)
		if d == UntilCancelled {
			<-ctx.Done()
			r.job(Cancelled, job, errors.Is(context.Cause(ctx), core.ErrLeaseLost))
		} else {
			time.Sleep(d)
		}
		if r.ends {
			r.job(Returned, job, false)
		}
		return nil
	}
}

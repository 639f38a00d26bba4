package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// workerRole is the variable that makes this test binary a worker.
const workerRole = "DUECLAIM_ACCEPTANCE_WORKER"

// orders are what a worker process reads from its standard input; it ends when
// that is closed.
type orders struct {
	At           place
	Slots        int
	Poll         time.Duration
	Lease        time.Duration
	NearSweep    time.Duration
	HorizonSweep time.Duration
	// Work says for each kind how long its handler works, deaf to its ctx, or one
	// of the constants below. Each handler then reports success.
	Work map[string]time.Duration
}

const untilCancelled time.Duration = -1

// event is one line of a worker's standard output.
type event struct {
	What    string // see below
	ID      core.ID
	Token   int64
	Crashes int
	Due     int64 // ms since 1970
	At      int64 // µs since 1970
	Lost    bool  // settled: refused with ErrLeaseLost; cancelled: because of it
	Text    string
}

const (
	ready     = "ready"
	started   = "started"
	cancelled = "cancelled" // a handler's ctx, seen by the handler
	settled   = "settled"   // a completion, accepted or refused
	givenBack = "givenBack" // any other outcome
	leaseLost = "leaseLost" // as the scheduler says it
	failed    = "failed"
	ended     = "ended"
)

// lateness is how long after its due time a started task began.
func (e event) lateness() time.Duration {
	return time.UnixMicro(e.At).Sub(time.UnixMilli(e.Due))
}

// reporter writes events.
type reporter struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (r *reporter) say(e event) {
	e.At = time.Now().UnixMicro()
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(e) // without its reader the worker is about to be ended
}

func (r *reporter) job(what string, job *core.Job, lost bool) {
	r.say(event{
		What: what, ID: job.Grant.ID, Token: job.Grant.Token, Crashes: job.Crashes, Due: job.Task.Due.UnixMilli(), Lost: lost,
	})
}

// work is a worker's main.
func work(stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReader(stdin)
	var o orders
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	p, err := open(ctx, o.At)
	if err != nil {
		return err
	}
	r := &reporter{out: json.NewEncoder(stdout)}
	var mux core.Mux
	for kind, d := range o.Work {
		mux.Register(kind, handler(r, d))
	}
	s, err := core.New(p.index, p.store, &mux, core.Options{
		Slots: o.Slots, Poll: o.Poll, Lease: o.Lease, NearSweep: o.NearSweep, HorizonSweep: o.HorizonSweep,
		Drain:    10 * time.Second,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Observer: observer(r),
	})
	if err != nil {
		return err
	}
	r.say(event{What: ready})
	err = s.Run(ctx)
	r.say(event{What: ended})
	return errors.Join(err, p.shut())
}

func handler(r *reporter, d time.Duration) core.HandlerFunc {
	return func(ctx context.Context, job *core.Job) error {
		r.job(started, job, false)
		if d == untilCancelled {
			<-ctx.Done()
			r.job(cancelled, job, errors.Is(context.Cause(ctx), core.ErrLeaseLost))
			return nil
		}
		time.Sleep(d)
		return nil
	}
}

func observer(r *reporter) core.Observer {
	return core.Observer{
		Settled: func(s core.Settlement, err error) {
			e := event{What: settled, ID: s.Grant.ID, Token: s.Grant.Token, Lost: errors.Is(err, core.ErrLeaseLost), Text: s.Outcome.String()}
			if s.Outcome != core.Done {
				e.What = givenBack
			}
			if err != nil && !e.Lost {
				e.Text = err.Error()
			}
			r.say(e)
		},
		LeaseLost: func(job *core.Job, _ error) { r.job(leaseLost, job, true) },
		Failed:    func(op string, err error) { r.say(event{What: failed, Text: op + ": " + err.Error()}) },
	}
}

package scenarios

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// workerRole is the variable that makes this test binary a worker.
const workerRole = "DUECLAIM_SCENARIOS_WORKER"

// orders are what a worker process reads from its standard input.
type orders struct {
	At                        place
	Name                      string
	Slots                     int
	Lease, Ahead, Drain, Work time.Duration // Work: how long a handler works, deaf to its ctx
	DieInClaim                bool          // kill -9 itself between index and store
}

// event is one line of a worker's standard output.
type event struct {
	What             string
	ID               core.ID
	Token            int64
	Attempt, Crashes int
	Failures         int
	Largest          int // ids in the claim that killed it
	At               int64
}

const (
	evReady    = "ready"
	evStarted  = "started"
	evDone     = "done"     // accepted
	evReleased = "released" // accepted
	evRefused  = "refused"
	evDies     = "dies"
)

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

// work is a worker's main: until SIGTERM or the end of its input.
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
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	h, err := open(ctx, o.At)
	if err != nil {
		return err
	}
	r := &reporter{out: json.NewEncoder(stdout)}
	store := hook(h.store)
	if o.DieInClaim {
		store.beforeClaim = func(_ context.Context, ids []core.ID, _ core.Lease) error {
			r.say(event{What: evDies, Largest: len(ids)})
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	opt := options(o.Lease)
	opt.Name, opt.Slots, opt.Ahead, opt.Drain = o.Name, o.Slots, o.Ahead, o.Drain
	opt.Logger = slog.New(slog.DiscardHandler)
	opt.Observer = core.Observer{Settled: func(s core.Settlement, err error) {
		e := event{What: evRefused, ID: s.Grant.ID, Token: s.Grant.Token}
		switch {
		case err != nil:
		case s.Outcome == core.Done:
			e.What = evDone
		case s.Outcome == core.Released:
			e.What = evReleased
		}
		r.say(e)
	}}
	s, err := core.New(h.index, store, core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		r.say(event{What: evStarted, ID: job.Task.ID, Token: job.Grant.Token, Attempt: job.Attempt, Crashes: job.Crashes, Failures: job.Failures()})
		time.Sleep(o.Work)
		return nil
	}), opt)
	if err != nil {
		return err
	}
	r.say(event{What: evReady})
	return errors.Join(s.Run(ctx), h.shut())
}

// process is a worker process and what it has said.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{} // closed when it is gone and all it said is in events
	err   error

	mu     sync.Mutex
	events []event
}

// launch starts a worker process, which ends with the test at the latest.
func launch(t *testing.T, o orders) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(self), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerRole+"=1")
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		p.listen(stdout)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	require.NoError(t, json.NewEncoder(stdin).Encode(o))
	until(t, 30*time.Second, "the worker is ready", func() bool { return len(p.all(evReady)) == 1 || p.gone() })
	return p
}

func (p *process) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line of one that was killed
		}
		p.mu.Lock()
		p.events = append(p.events, e)
		p.mu.Unlock()
	}
}

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// all returns what it has said so far of a kind.
func (p *process) all(what string) (some []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.What == what {
			some = append(some, e)
		}
	}
	return some
}

// kill ends it as a crash would; when it returns, all that it said is known.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.ended
}

// term asks it to end, by SIGTERM.
func (p *process) term() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
}

// wait waits for its end, which must be a good one.
func (p *process) wait() {
	p.t.Helper()
	select {
	case <-p.ended:
		require.NoError(p.t, p.err)
	case <-time.After(30 * time.Second):
		p.t.Fatal("the worker doesn't end")
	}
}

// stop has it finish what it has.
func (p *process) stop() {
	p.t.Helper()
	p.term()
	p.wait()
}

// startsOf counts the starts of each id.
func startsOf(processes ...*process) map[core.ID][]event {
	all := map[core.ID][]event{}
	for _, p := range processes {
		for _, e := range p.all(evStarted) {
			all[e.ID] = append(all[e.ID], e)
		}
	}
	return all
}

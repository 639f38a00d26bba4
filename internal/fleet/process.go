package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Process is a worker process and what it has said. Its methods without a
// *testing.T may be called from any goroutine.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when it is gone and all it said is in events
	err   error         // how it ended

	mu        sync.Mutex
	events    []Event
	counts    map[string]int // by what was said
	completed int
}

// Start starts a worker, which ends with the test at the latest, and returns when
// it is ready.
func Start(t *testing.T, o Orders) *Process {
	t.Helper()
	p, err := Launch(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("worker %d said: %v", p.Pid(), p.Counts())
		}
	})
	Until(t, 30*time.Second, "the worker is ready", func() bool { return p.Count(Ready) == 1 || p.Gone() })
	require.Equal(t, 1, p.Count(Ready), "the worker ended at once")
	return p
}

// Launch starts a worker and doesn't wait until it is ready. The caller must see
// to its end.
func Launch(o Orders) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(self), ended: make(chan struct{}), counts: map[string]int{}}
	p.cmd.Env = append(os.Environ(), workerRole+"=1")
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.listen(stdout)
		p.err = p.cmd.Wait()
	}()
	if err := json.NewEncoder(stdin).Encode(o); err != nil {
		p.Kill()
		return nil, fmt.Errorf("orders: %w", err)
	}
	return p, nil
}

func (p *Process) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line of one that was killed
		}
		p.mu.Lock()
		p.events = append(p.events, e)
		p.counts[e.What]++
		if e.Completed() {
			p.completed++
		}
		p.mu.Unlock()
	}
}

// Pid is its process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Gone says whether it has ended and all that it said is known.
func (p *Process) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// All returns what it has said so far of a kind, about ids under a prefix ("":
// all).
func (p *Process) All(what, prefix string) []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	var some []Event
	for _, e := range p.events {
		if e.What == what && (prefix == "" || Has(e.ID, prefix)) {
			some = append(some, e)
		}
	}
	return some
}

// Count is how much it has said of a kind.
func (p *Process) Count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[what]
}

// Completed is how many of its completions the store has accepted.
func (p *Process) Completed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.completed
}

// Counts is how much it has said of each kind.
func (p *Process) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := make(map[string]int, len(p.counts))
	for what, count := range p.counts {
		n[what] = count
	}
	return n
}

// Signal sends it a signal, such as SIGSTOP.
func (p *Process) Signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// Freeze stops it as SIGSTOP does: none of its goroutines goes on until Thaw.
func (p *Process) Freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets it go on after Freeze.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends it as a crash would; when it returns, all that it said is known.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.ended
}

// Finish lets it finish what it has, for as long as patience. The error is that
// of its end.
func (p *Process) Finish(patience time.Duration) error {
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return p.wait(patience)
}

// wait waits for its end and returns the error of that.
func (p *Process) wait(patience time.Duration) error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		return fmt.Errorf("worker %d doesn't end within %v", p.Pid(), patience)
	}
}

// Stop lets it finish what it has, which it must without an error.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Finish(30*time.Second))
}

// Terminate is Stop by SIGTERM, as at a deploy.
func (p *Process) Terminate(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	require.NoError(t, p.wait(30*time.Second))
}

// StopAll stops several workers, one after the other.
func StopAll(t *testing.T, processes []*Process) {
	t.Helper()
	for _, p := range processes {
		p.Stop(t)
	}
}

// CountAll is how much several workers have said of a kind.
func CountAll(processes []*Process, what string) int {
	n := 0
	for _, p := range processes {
		n += p.Count(what)
	}
	return n
}

// Said gathers the events of several workers, ordered by time.
func Said(processes []*Process, what, prefix string) []Event {
	var all []Event
	for _, p := range processes {
		all = append(all, p.All(what, prefix)...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return int(a.At - b.At) })
	return all
}

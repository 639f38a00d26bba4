package acceptance

import (
	"bufio"
	"encoding/json"
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

// process is a worker process and what it has said.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when it is gone and all it said is in events
	err   error         // how it ended

	mu     sync.Mutex
	events []event
	counts map[string]int // by what was said
}

// start starts a worker, which ends with the test at the latest.
func start(t *testing.T, o orders) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(self), ended: make(chan struct{}), counts: map[string]int{}}
	p.cmd.Env = append(os.Environ(), workerRole+"=1")
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		p.listen(stdout)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("worker %d said: %v", p.cmd.Process.Pid, p.counts)
		}
	})
	require.NoError(t, json.NewEncoder(stdin).Encode(o))
	until(t, 30*time.Second, "the worker is ready", func() bool { return p.count(ready) == 1 || p.gone() })
	require.False(t, p.gone(), "the worker ended at once")
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
		p.counts[e.What]++
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

// all returns what it has said so far of a kind, about ids under a prefix ("":
// all).
func (p *process) all(what, prefix string) []event {
	p.mu.Lock()
	defer p.mu.Unlock()
	var some []event
	for _, e := range p.events {
		if e.What == what && (prefix == "" || has(e.ID, prefix)) {
			some = append(some, e)
		}
	}
	return some
}

// count is how much it has said of a kind.
func (p *process) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[what]
}

// countAll is that of several workers.
func countAll(processes []*process, what string) int {
	n := 0
	for _, p := range processes {
		n += p.count(what)
	}
	return n
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// kill ends it as a crash would; when it returns, all that it said is known.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.ended
}

// stop lets it finish what it has, which it must without an error.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.stdin.Close())
	select {
	case <-p.ended:
		require.NoError(t, p.err)
	case <-time.After(30 * time.Second):
		t.Fatal("the worker doesn't end")
	}
}

func stopAll(t *testing.T, processes []*process) {
	t.Helper()
	for _, p := range processes {
		p.stop(t)
	}
}

// said gathers the events of several workers, ordered by time.
func said(processes []*process, what, prefix string) []event {
	var all []event
	for _, p := range processes {
		all = append(all, p.all(what, prefix)...)
	}
	slices.SortStableFunc(all, func(a, b event) int { return int(a.At - b.At) })
	return all
}

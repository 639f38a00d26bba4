// Package workers runs copies of the program as worker processes: real ones, that
// can be killed.
//
// A worker gets its orders as one line of JSON on its standard input, where no
// list of processes shows a password. The pipe then stays open: when it closes,
// because the parent said so or because the parent is gone, however it ended, the
// worker finishes what it has and ends too. So none is ever left behind.
package workers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// argument is the hidden word that makes the program a worker.
const argument = "worker"

// Process is a running worker.
type Process struct {
	Name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}
	err   error // how it ended; after ended is closed
}

// Start starts a worker with its orders. What it writes to its standard error
// goes to the parent's.
func Start[T any](name string, orders T) (*Process, error) {
	return StartHearing[T, struct{}](name, orders, nil)
}

// StartHearing is Start for a worker that tells the parent something while it
// works: hear is called, by one goroutine, with all that it gave to Tell, also
// with the last words of one that was killed. After Kill and Stop nothing more
// comes.
func StartHearing[T, M any](name string, orders T, hear func(M)) (*Process, error) {
	line, err := json.Marshal(orders)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, cmd: exec.Command(program, argument, name), ended: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	var words io.ReadCloser
	if hear != nil {
		if words, err = p.cmd.StdoutPipe(); err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { // ends with the process; Stop joins it
		if hear != nil {
			listen(words, hear) // to its end, before Wait closes it
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// listen calls hear with each line. One that is no whole message is the last: its
// writer was killed.
func listen[M any](words io.Reader, hear func(M)) {
	lines := bufio.NewScanner(words)
	for lines.Scan() {
		var message M
		if json.Unmarshal(lines.Bytes(), &message) == nil {
			hear(message)
		}
	}
	_, _ = io.Copy(io.Discard, words)
}

// Ended is closed when the process is gone and all that it told was heard.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill ends the process at once, as a power cut would (SIGKILL), and waits until
// it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.ended
}

// Stop asks the process to finish what it has, waits for its end, and kills it
// after patience. It returns how the process ended.
func (p *Process) Stop(patience time.Duration) error {
	_ = p.stdin.Close() // it may have ended before
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("%s did not end within %v and was killed", p.Name, patience)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w", p.Name, p.err)
	}
	return nil
}

package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// startTimeout is how long a server may take until it answers.
const startTimeout = 30 * time.Second

// Options change how a server runs. The zero value is made for speed: what is
// committed survives the end of the server (Redis: is lost with it), not that
// of the machine.
type Options struct {
	Durable bool     // sync every commit to the disk, as in production; Redis: keep an append-only file
	Args    []string // further arguments, after and so above our own
	// Upstream is the postgres:// URL of another server: for PgBouncer the one behind it,
	// for Postgres the primary of which this one is a standby.
	Upstream string
}

// Server is one running, or stopped, child process. Its methods may be called
// from any goroutine.
type Server struct {
	binary Binary
	recipe recipe
	launch launch

	mu  sync.Mutex
	pid int // 0 while it doesn't run
}

// Start starts a server on a free port and returns when it answers. The error
// carries the end of its log.
func Start(k Kind, o Options) (*Server, error) {
	r, err := recipeOf(k)
	if err != nil {
		return nil, err
	}
	binary, err := r.find()
	if err != nil {
		return nil, err
	}
	prepared, err := template(binary)
	if err != nil {
		return nil, err
	}
	dir, err := newDir(string(k), r.unprivileged)
	if err != nil {
		return nil, err
	}
	s := &Server{binary: binary, recipe: r, launch: launch{dir: dir, Options: o}}
	if r.clone != nil && o.Upstream != "" {
		if err := r.clone(binary, s.launch); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	} else if prepared != "" {
		data := filepath.Join(dir, "data")
		if err := copyTree(prepared, data); err != nil {
			return nil, err
		}
		if r.unprivileged {
			if err := giveAway(data); err != nil {
				return nil, err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A few tries, since the port may be taken between the look and the start.
	for range 5 {
		if s.launch.port, err = freePort(); err != nil {
			break
		}
		if err = s.run(); err == nil || !errors.Is(err, errEnded) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Addr is where it listens: "127.0.0.1:PORT".
func (s *Server) Addr() string { return addrOf(s.launch.port) }

// Port is the port where it listens; a restart keeps it.
func (s *Server) Port() int { return s.launch.port }

// Kind is what it is.
func (s *Server) Kind() Kind { return s.binary.Kind }

// Dir is its private folder, with the data folder "data" and the "log".
func (s *Server) Dir() string { return s.launch.dir }

// Pid is the process id, 0 while it doesn't run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// Log is the end of what it wrote to its log, at most 4 KiB.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(tail(text))
}

// Kill ends it at once, as a crash would. Its folder stays, for a Restart.
func (s *Server) Kill() error { return s.end("KILL") }

// Stop freezes it: its connections stay open and answer nothing.
func (s *Server) Stop() error { return s.signal("STOP") }

// Cont lets it go on after Stop.
func (s *Server) Cont() error { return s.signal("CONT") }

// Restart starts it again on the same port and data, killing it first where it
// still runs, and returns when it answers.
func (s *Server) Restart() error {
	if err := s.Kill(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	// What a killed server leaves (its port, Postgres's other processes) goes away within moments.
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = s.run(); err == nil || !errors.Is(err, errEnded) {
			return err
		}
	}
	return err
}

// Close ends it for good and removes its folder. A second Close does nothing.
func (s *Server) Close() error {
	return errors.Join(s.end(s.recipe.endWith), os.RemoveAll(s.launch.dir))
}

func (s *Server) signal(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid == 0 {
		return fmt.Errorf("%s: SIG%s: it is not running", s.Kind(), name)
	}
	return sendSignal(s.pid, name)
}

func (s *Server) end(signal string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid == 0 {
		return nil
	}
	// A stopped process hears nothing but SIGKILL. An error means that it has ended.
	_ = sendSignal(s.pid, "CONT")
	_ = sendSignal(s.pid, signal)
	for deadline := time.Now().Add(5 * time.Second); signal != "KILL" && !exited(s.pid, false); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			signal = "KILL"
			_ = sendSignal(s.pid, signal)
		}
	}
	if signal == "KILL" {
		exited(s.pid, true)
	}
	s.pid = 0
	return os.Remove(s.pidPath())
}

// errEnded: the server ended instead of starting up.
var errEnded = errors.New("it ended while starting")

// run starts the process and waits until it answers. s.mu is held.
func (s *Server) run() error {
	argv, err := s.recipe.argv(s.binary, s.launch)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], append(argv[1:], s.launch.Args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.launch.dir, log, log, ownSession()
	if s.recipe.unprivileged {
		cmd.SysProcAttr = unprivileged()
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", s.Kind(), err)
	}
	s.pid = cmd.Process.Pid
	// From here on the reaper knows it.
	err = os.WriteFile(s.pidPath(), fmt.Appendf(nil, "%s %d\n", s.recipe.endWith, s.pid), 0o644)
	if err = errors.Join(err, cmd.Process.Release()); err == nil {
		err = s.awaitReady(began)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: start %v: %w; the end of its log:\n%s", s.Kind(), argv, err, s.Log())
	if !errors.Is(err, errEnded) {
		_ = sendSignal(s.pid, "KILL")
		exited(s.pid, true)
	}
	s.pid = 0
	return errors.Join(err, os.Remove(s.pidPath()))
}

func (s *Server) awaitReady(began time.Time) error {
	last := errors.New("it does not listen")
	for time.Since(began) < startTimeout {
		if exited(s.pid, false) {
			return errEnded
		}
		if listens(s.pid, s.launch.port) {
			if last = s.recipe.ready(s.Addr()); last == nil {
				return nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("not ready after %v: %w", startTimeout, last)
}

func (s *Server) logPath() string { return filepath.Join(s.launch.dir, "log") }
func (s *Server) pidPath() string { return filepath.Join(s.launch.dir, "server.pid") }

// tail is the end of a log, for a failure message.
func tail(text []byte) []byte {
	const most = 4 << 10
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return text
}

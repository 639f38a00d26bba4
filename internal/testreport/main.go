// Command testreport runs "go test -json" and reports to a person: a line for
// each package as it ends, failures with their output, and on the last lines
// which backends and which pairs of them were tested, and which were NOT.
//
//	testreport [-raw FILE] go test -json ./...
//
// Tests say which backend they exercise by an attribute:
//
//	t.Attr("dueclaim.backend", "store:mariadb")
//	t.Attr("dueclaim.backend", "index:redis")
//	t.Attr("dueclaim.backend", "pair:redis+mariadb")
//
// A test that can't have its server skips with "NOT tested: <server>: <reason>".
//
// It runs go test itself, rather than to read a pipe, so that its exit status
// is that of the tests. It fails as well when a backend that the environment
// requires (DUECLAIM_REQUIRE, or CI=true) was not tested, and when no test ran.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	raw := flag.String("raw", "", "also write all events to this `file`")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: testreport [-raw FILE] go test -json ...")
		os.Exit(2)
	}
	status, err := run(os.Stdout, *raw, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// run runs the command, reports to out, and returns the exit status.
func run(out io.Writer, raw string, argv []string) (int, error) {
	// Ctrl-C and the end of CI's time reach go test as well; what was seen until then is worth reporting.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	var events io.Reader = pipe
	if raw != "" {
		file, err := os.Create(raw)
		if err != nil {
			return 1, err
		}
		defer file.Close()
		events = io.TeeReader(pipe, file)
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	r := newRun(out)
	readErr := follow(r, events)
	r.endUnfinished()
	waitErr := cmd.Wait()
	status := 0
	var exit *exec.ExitError
	switch {
	case errors.As(waitErr, &exit):
		status, waitErr = max(exit.ExitCode(), 1), nil
	case waitErr != nil:
		status = 1
	}
	if !finish(out, r) {
		status = max(status, 1)
	}
	return status, errors.Join(readErr, waitErr)
}

// lifeSign is how long the report stays silent at most.
const lifeSign = 30 * time.Second

// follow feeds the events to r until they end, with a sign of life in between.
func follow(r *testRun, events io.Reader) error {
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(events)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed <- err
				}
				return
			}
		}
	}()
	quiet := time.NewTimer(lifeSign)
	defer quiet.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				select {
				case err := <-failed:
					return err
				default:
					return nil
				}
			}
			if r.line(line) {
				quiet.Reset(lifeSign)
			}
		case <-quiet.C:
			r.stillRunning()
			quiet.Reset(lifeSign)
		}
	}
}

// Command testreport runs "go test -json" and reports to a person: a line for
// each package as it ends, failures with their output, and on the last lines
// which backends and which pairs of them were tested, and which were NOT.
//
//	testreport [-raw FILE] go test -json ./...
//
// FILE gets all events, after a first line of what was run;
// package conformancetable reads it.
//
// Tests say which backend they exercise by an attribute:
//
//	t.Attr("dueclaim.backend", "store:mariadb")
//	t.Attr("dueclaim.backend", "index:redis")
//	t.Attr("dueclaim.backend", "pair:redis+mariadb")
//
// and how many broken doubles they caught, which is said before the table:
//
//	t.Attr("dueclaim.caught", "broken indexes: 28 of 28")
//
// and what they measured, which is said there too:
//
//	t.Attr("dueclaim.figure", "kill -9 of workers: 300 kills, 0 lost")
//
// A test that can't have its server skips with "NOT tested: <server>: <reason>".
//
// It runs go test itself, rather than to read a pipe, so that its exit status
// is that of the tests. It fails as well when a backend that the environment
// requires (DUECLAIM_REQUIRE, or CI=true) was not tested, and when no test ran.
package main

import (
	"bufio"
	"encoding/json"
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
		if err := sayWhat(file, argv); err != nil {
			return 1, err
		}
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

// sayWhat begins a file of events with what is run and where: whoever reads the
// file later must know a part of the tests from all.
func sayWhat(file io.Writer, argv []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	return json.NewEncoder(file).Encode(struct {
		Action, Dir string
		Argv        []string
	}{"command", dir, argv})
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

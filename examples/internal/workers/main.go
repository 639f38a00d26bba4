package workers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// Name returns the name of this process where it is a worker, and ok false where
// it is the parent.
func Name() (name string, ok bool) {
	if len(os.Args) == 3 && os.Args[1] == argument {
		return os.Args[2], true
	}
	return "", false
}

// Main is a worker's whole main: it reads the orders, calls work with a ctx that
// is done when the parent closes the pipe, and returns the exit status.
func Main[T any](work func(ctx context.Context, orders T) error) int {
	// Ctrl-C goes to every process at the terminal. The parent deals with it.
	signal.Ignore(os.Interrupt)
	name, _ := Name()
	in := bufio.NewReader(os.Stdin)
	var orders T
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &orders)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: no orders on the standard input: %v\n", name, err)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the process at the latest
		_, _ = io.Copy(io.Discard, in) // until it is closed
		cancel()
	}()
	if err := work(ctx, orders); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Tell gives message to the parent, which started this worker with StartHearing.
// It may be called concurrently. What was told before the process is killed
// arrives.
func Tell[M any](message M) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(line, '\n')) // one write: lines of a pipe don't mix
	return err
}

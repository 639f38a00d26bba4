package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/dueclaim/dueclaim/examples/internal/parts"
)

// settings is what the command line says.
type settings struct {
	index, store string
	tasks        int
	workers      int
	over         time.Duration
	lease        time.Duration
}

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.StringVar(&s.index, "index", "heap", "time index: heap, or redis://host:port/0")
	flags.StringVar(&s.store, "store", "sqlite", "claim store: sqlite (a temporary file), sqlite:PATH, mysql://user:password@host:port/database or postgres://…")
	flags.IntVar(&s.tasks, "tasks", 2000, "number of tasks")
	flags.IntVar(&s.workers, "workers", 3, "number of worker processes; one of them is killed")
	flags.DurationVar(&s.over, "over", 5*time.Second, "time over which the tasks come due")
	flags.DurationVar(&s.lease, "lease", 2*time.Second, "how long a claim holds without a heartbeat")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.tasks < 1 || s.tasks > 1_000_000:
		return s, fmt.Errorf("-tasks is %d, want 1 to 1000000", s.tasks)
	case s.workers < 2 || s.workers > 50:
		return s, fmt.Errorf("-workers is %d, want 2 (one of them is killed) to 50", s.workers)
	case s.over < time.Second || s.over > time.Hour:
		return s, fmt.Errorf("-over is %v, want 1s to 1h", s.over)
	case s.lease < 500*time.Millisecond || s.lease > time.Hour:
		return s, fmt.Errorf("-lease is %v, want 500ms to 1h", s.lease)
	}
	return s, parts.Choice{Index: s.index, Store: s.store}.Check()
}

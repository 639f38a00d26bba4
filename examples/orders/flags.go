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
	orders       int
	workers      int
	speed        float64
	lease        time.Duration
}

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.StringVar(&s.index, "index", "heap", "time index: heap, or redis://host:port/0")
	flags.StringVar(&s.store, "store", "sqlite", "database of the shop and its tasks: sqlite (a temporary file), sqlite:PATH, mysql://user:password@host:port/database or postgres://…")
	flags.IntVar(&s.orders, "orders", 0, "play only the first orders of the day; 0: all")
	flags.IntVar(&s.workers, "workers", 3, "number of worker processes; one of them is killed")
	flags.Float64Var(&s.speed, "speed", 600, "how much faster than real time goes by")
	flags.DurationVar(&s.lease, "lease", 2*time.Second, "how long a claim holds without a heartbeat, in real time")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.orders < 0:
		return s, fmt.Errorf("-orders is %d, want 1 or more, or 0 for all", s.orders)
	case s.workers < 2 || s.workers > 50:
		return s, fmt.Errorf("-workers is %d, want 2 (one of them is killed) to 50", s.workers)
	case !(s.speed >= 1 && s.speed <= 3600):
		return s, fmt.Errorf("-speed is %v, want 1 to 3600", s.speed)
	case s.lease < 500*time.Millisecond || s.lease > time.Hour:
		return s, fmt.Errorf("-lease is %v, want 500ms to 1h", s.lease)
	}
	return s, parts.Choice{Index: s.index, Store: s.store}.Check()
}

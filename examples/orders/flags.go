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
	mode         mode
	orders       int
	workers      int
	kills        int
	speed        float64
	lease        time.Duration
}

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.StringVar((*string)(&s.mode), "mode", string(status), "what dueclaim may use of the table of orders: status (the table as it is), full (with columns added) or transition (the status alone)")
	flags.StringVar(&s.index, "index", "heap", "time index: heap, or redis://host:port/0")
	flags.StringVar(&s.store, "store", "sqlite", "database of the shop: sqlite (a temporary file), sqlite:PATH, mysql://user:password@host:port/database or postgres://…")
	flags.IntVar(&s.orders, "orders", 0, "how many orders to play, of the day and of days like it after it; 0: one day")
	flags.IntVar(&s.workers, "workers", 3, "number of worker processes")
	flags.IntVar(&s.kills, "kills", 2, "how many times a worker is killed (SIGKILL), and another one started")
	flags.Float64Var(&s.speed, "speed", 600, "how much faster than real time goes by")
	flags.DurationVar(&s.lease, "lease", 2*time.Second, "how long a claim holds without a heartbeat, in real time")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.mode != status && s.mode != full && s.mode != transition:
		return s, fmt.Errorf("-mode is %q, want %s, %s or %s", s.mode, status, full, transition)
	case s.orders < 0 || s.orders > mostOrders:
		return s, fmt.Errorf("-orders is %d, want 1 to %d, or 0 for all of a day", s.orders, mostOrders)
	case s.workers < 1 || s.workers > 50:
		return s, fmt.Errorf("-workers is %d, want 1 to 50", s.workers)
	case s.kills < 0 || s.kills > 50:
		return s, fmt.Errorf("-kills is %d, want 0 to 50", s.kills)
	case !(s.speed >= 1 && s.speed <= 3600):
		return s, fmt.Errorf("-speed is %v, want 1 to 3600", s.speed)
	case s.lease < time.Second || s.lease > time.Hour || s.lease%time.Second != 0:
		return s, fmt.Errorf("-lease is %v, want whole seconds from 1s to 1h", s.lease)
	}
	return s, parts.Choice{Index: s.index, Store: s.store}.Check()
}

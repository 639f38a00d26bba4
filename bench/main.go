package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	systems := flag.String("systems", "", "only systems whose names match this pattern")
	rounds := flag.Int("rounds", 3, "rounds, in which the systems alternate")
	n := flag.Int("n", 50_000, "tasks of a drain")
	keep := flag.Bool("keep", false, "keep finished rows")
	workers := flag.Int("workers", 1, "schedulers")
	profile := flag.String("cpuprofile", "", "write a profile here")
	flag.Parse()
	only, err := regexp.Compile(*systems)
	if err != nil {
		return err
	}
	m := newMachine()
	defer m.close()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for range *rounds {
		for _, s := range dueclaimSystems() {
			if !only.MatchString(s.name) {
				continue
			}
			d, err := drain(ctx, m, s, options{keep: *keep, workers: *workers}, *n)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Printf("%-26s %8.0f/s  %6.1f µs a task (client %.1f", s.name, d.rate(), d.perTask(d.cpu.total()), d.perTask(d.cpu.client))
			for k, v := range d.cpu.servers {
				fmt.Printf(", %s %.1f", k, d.perTask(v))
			}
			fmt.Println(")")
		}
	}
	return nil
}

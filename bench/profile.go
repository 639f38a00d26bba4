package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// profileOptions are those of a drain by hand, for profiling.
type profileOptions struct {
	only    *regexp.Regexp
	rounds  int
	n       int
	keep    bool
	workers int
}

// profileDrain drains each system in turn and prints a line each.
func profileDrain(ctx context.Context, m *machine, p profileOptions) error {
	for range p.rounds {
		for _, s := range systems() {
			if !p.only.MatchString(s.name) {
				continue
			}
			d, err := drain(ctx, m, s, options{keep: p.keep, workers: p.workers}, p.n)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Printf("%-26s %8.0f/s  %6.1f µs a task (client %.1f", s.name, d.rate(), d.perTask(d.cpu.total()), d.perTask(d.cpu.client))
			for _, k := range slices.Sorted(maps.Keys(d.cpu.servers)) {
				fmt.Printf(", %s %.1f", k, d.perTask(d.cpu.servers[k]))
			}
			fmt.Println(")")
		}
	}
	return nil
}

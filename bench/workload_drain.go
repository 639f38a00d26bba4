package main

import (
	"context"
	"fmt"
	"slices"
)

// Cases of drain.
const (
	caseDeleted = "deleted"
	caseKept    = "kept"
)

// drainWorkload: tasks that are due already, and a handler that does nothing.
func drainWorkload() workload {
	return workload{
		name: "drain",
		sizes: func(s sizes) string {
			return fmt.Sprintf("%d tasks, for slow and for very fast systems a share or a multiple of it", s.drain)
		},
		run: func(ctx context.Context, r *round) error {
			for _, keep := range both {
				kase := caseDeleted
				if keep {
					kase = caseKept
				}
				for _, s := range r.turns(systems()) {
					if !slices.Contains(s.keeps, keep) || s.plain && s.keeps[0] != keep { // as it comes: once
						continue
					}
					n := s.of(r.size.drain)
					d, err := drain(ctx, r.machine, s, options{keep: keep}, n)
					if err != nil {
						return failed(kase, s, err)
					}
					r.record(kase, s.name, d.metrics())
				}
			}
			return nil
		},
	}
}

// metrics of a drain: tasks a second, and microseconds of processor time a task.
func (d drained) metrics() map[string]float64 {
	m := map[string]float64{"tasks": float64(d.n), "rate": d.rate(), "cpu": d.perTask(d.cpu.total()), "cpu client": d.perTask(d.cpu.client)}
	for kind, seconds := range d.cpu.servers {
		m["cpu "+string(kind)] = d.perTask(seconds)
	}
	return m
}

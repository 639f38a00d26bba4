package main

import (
	"context"
	"fmt"
	"sync/atomic"
)

// contentionWorkload: a drain by several schedulers on the same queue, all in this
// process, with pools of connections that they share.
func contentionWorkload() workload {
	return workload{
		name: "contention",
		sizes: func(s sizes) string {
			return fmt.Sprintf("%d tasks; %s schedulers, each with 2,000 slots of its own", s.contention, list(s.schedulers))
		},
		run: func(ctx context.Context, r *round) error {
			for _, workers := range r.size.schedulers {
				kase := fmt.Sprint(workers)
				for _, s := range r.turns(named(systems(), redisPostgres, redisMariaDB, riverBest, asynqBest)) {
					var granted, refused atomic.Int64
					o := options{keep: s.keeps[0], workers: workers, claimed: func(g, n int) {
						granted.Add(int64(g))
						refused.Add(int64(n))
					}}
					d, err := drain(ctx, r.machine, s, o, s.of(r.size.contention))
					if err != nil {
						return failed(kase, s, err)
					}
					metrics := d.metrics()
					if all := granted.Load() + refused.Load(); all > 0 {
						metrics["wasted"] = 100 * float64(refused.Load()) / float64(all)
					}
					r.record(kase, s.name, metrics)
				}
			}
			return nil
		},
	}
}

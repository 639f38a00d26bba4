package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

const (
	limitConns  = 8
	insertBatch = 1000
	claimBatch  = 500
	redisBatch  = 100
)

// Steps of limits, in the report's order.
const (
	stepInsert = "insert"
	stepClaim  = "claim"
	stepUpdate = "finish by update"
	stepDelete = "finish by delete"
	stepAdd    = "add"
	stepTake   = "take"
	stepRemove = "remove"
)

// limitsWorkload: what the servers can do at all with plain statements of the same
// kind and size, beside what dueclaim's adapters get out of them.
func limitsWorkload() workload {
	return workload{
		name: "limits",
		sizes: func(s sizes) string {
			return fmt.Sprintf("%d rows or entries, %d connections; a call inserts %d, claims and finishes %d; Redis: %d", s.limit, limitConns, insertBatch, claimBatch, redisBatch)
		},
		run: func(ctx context.Context, r *round) error {
			for _, kind := range []serverKind{server.Postgres, server.MariaDB, server.MySQL, server.Redis} {
				place := system{name: string(kind), servers: []serverKind{kind}}
				if len(r.turns([]system{place})) == 0 {
					continue
				}
				if err := limits(ctx, r, kind); err != nil {
					return failed("limits", place, err)
				}
			}
			return nil
		},
	}
}

// limits measures one server: the plain statements and the adapter, in turn first.
func limits(ctx context.Context, r *round, kind serverKind) error {
	ways := []func(context.Context, *round, serverKind) error{plainSQL, adapterSQL}
	if kind == server.Redis {
		ways = []func(context.Context, *round, serverKind) error{plainRedis, adapterRedis}
	}
	if r.number%2 == 1 {
		ways[0], ways[1] = ways[1], ways[0]
	}
	for _, way := range ways {
		if err := way(ctx, r, kind); err != nil {
			return err
		}
	}
	return nil
}

// Names of limits' systems.
func plainOn(kind serverKind) string { return "plain statements, " + string(kind) }

func adapterOn(kind serverKind) string { return "dueclaim, " + string(kind) }

// timed runs f over n rows in batches, on as many connections as are measured, and
// records rows a second.
func timed(ctx context.Context, r *round, step, system string, n, batch int, f func(ctx context.Context, first, end int) error) error {
	began := time.Now()
	if err := inBatches(ctx, limitConns, n, batch, f); err != nil {
		return fmt.Errorf("%s, %s: %w", step, system, err)
	}
	r.record(step, system, map[string]float64{"rate": float64(n) / time.Since(began).Seconds()})
	return nil
}

// expectRows fails unless a statement changed or returned all the rows it was for.
func expectRows(got, want int) error {
	if got != want {
		return fmt.Errorf("%d rows, want %d", got, want)
	}
	return nil
}

// plain is one server's way to run the plain statements on the rows first..end-1.
type plain interface {
	create(ctx context.Context) error
	insert(ctx context.Context, first, end int) error
	claim(ctx context.Context, first, end int) error
	finish(ctx context.Context, first, end int) error // the row stays
	remove(ctx context.Context, first, end int) error
	tidy(ctx context.Context) error
}

func plainSQL(ctx context.Context, r *round, kind serverKind) (err error) {
	p, free, err := openPlain(ctx, r.machine, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	if err := p.create(ctx); err != nil {
		return err
	}
	name := plainOn(kind)
	n := r.size.limit
	if kind == server.MySQL {
		n /= 2
	}
	// Both ways to finish begin with claimed rows.
	for _, finish := range []struct {
		step string
		run  func(ctx context.Context, first, end int) error
	}{{stepDelete, p.remove}, {stepUpdate, p.finish}} {
		if finish.step == stepDelete {
			err = timed(ctx, r, stepInsert, name, n, insertBatch, p.insert)
		} else { // the rows are gone, and inserted again
			err = inBatches(ctx, limitConns, n, insertBatch, p.insert)
		}
		if err = errors.Join(err, p.tidy(ctx)); err != nil {
			return err
		}
		if finish.step == stepDelete {
			err = timed(ctx, r, stepClaim, name, n, claimBatch, p.claim)
		} else {
			err = inBatches(ctx, limitConns, n, claimBatch, p.claim)
		}
		if err != nil {
			return err
		}
		if err := timed(ctx, r, finish.step, name, n, claimBatch, finish.run); err != nil {
			return err
		}
	}
	return nil
}

func openPlain(ctx context.Context, m *machine, kind serverKind) (plain, func() error, error) {
	if kind == server.Postgres {
		pool, free, err := m.postgres(ctx, limitConns)
		return plainPostgres{pool}, free, err
	}
	db, free, err := m.mysql(ctx, kind, limitConns)
	return plainMySQL{db}, free, err
}

package chaos

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// storm has pairs of transactions lock rows of the newest tasks in opposing order,
// all at once, while workers claim and complete them. It returns how many of these
// transactions were the victims of a deadlock. A pair is repeated until it has one.
func (d *database) storm(t *testing.T, r *run, pairs int) int {
	t.Helper()
	ids := r.ledger.latest(2 * pairs)
	r.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var victims atomic.Int64
	var all sync.WaitGroup
	gate := make(chan struct{}, 5) // at a time
	for i := range pairs {
		a, b := ids[2*i], ids[2*i+1]
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			for range 5 {
				if n := d.conflict(t.Context(), a, b); n > 0 {
					victims.Add(int64(n))
					return
				}
			}
		})
	}
	all.Wait()
	return int(victims.Load())
}

// conflict is one pair. It returns how many of the two were victims.
func (d *database) conflict(ctx context.Context, a, b core.ID) int {
	var victims atomic.Int64
	var first, both sync.WaitGroup
	first.Add(2)
	for _, order := range [][2]core.ID{{a, b}, {b, a}} {
		both.Go(func() {
			arrived := sync.OnceFunc(first.Done)
			defer arrived()
			tx, err := d.admin.BeginTx(ctx, nil)
			if err != nil {
				return
			}
			defer func() { _ = tx.Rollback() }()
			if lock(ctx, tx, order[0]) != nil {
				return
			}
			arrived()
			first.Wait()
			if c := code(lock(ctx, tx, order[1])); c == "1213" || c == "40P01" {
				victims.Add(1)
			}
		})
	}
	both.Wait()
	return int(victims.Load())
}

func lock(ctx context.Context, tx *sql.Tx, id core.ID) error {
	var status string // ids are of our own making
	return tx.QueryRowContext(ctx, "SELECT status FROM "+claim.DefaultTable+" WHERE queue = 'default' AND id = '"+string(id)+"' FOR UPDATE").Scan(&status)
}

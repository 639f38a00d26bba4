package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// https://github.com/rails/solid_queue/issues/162 (and #531, #609, #229, #240):
// dispatching, inserting and deleting deadlocked on MySQL, over secondary indexes and
// gaps. Right: producers, workers, sweepers and purgers at once, on the default
// isolation level: no error reaches a caller, nothing is lost, and deadlocks
// are counted.
func TestR49ProducersWorkersSweepersAndPurgersDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	const producers, workers, sweepers, purgers, batch = 8, 8, 2, 2, 100
	b := newBench(t, fleet.MariaDB)
	var level string
	require.NoError(t, b.DB.QueryRowContext(t.Context(), "SELECT @@tx_isolation").Scan(&level))
	require.Equal(t, "REPEATABLE-READ", level)
	b.DB.SetMaxOpenConns(40)
	deadlocks := func() (n int) {
		var name string
		require.NoError(t, b.DB.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'").Scan(&name, &n))
		return n
	}
	before, began := deadlocks(), time.Now()

	j := newJournal()
	var seen atomic.Int64 // deadlocks that reached core, which tries again
	var all []*worker
	for i := range workers {
		store := hook(b.Parts)
		opt := options(20 * time.Second)
		opt.NearSweep, opt.HorizonSweep = time.Second, 3*time.Second
		opt.KeepFinished = -1 // the purgers here do it
		all = append(all, j.start(t, fmt.Sprint("w", i), b.Index, counting{store, &seen}, done, opt))
	}
	span := scale(3*time.Second, 60*time.Second)
	ctx, stop := context.WithTimeout(t.Context(), span)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var ids []core.ID
	for i := range producers {
		wg.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				list := fleet.Tasks(fmt.Sprintf("p%d-%d", k%7, i)+fmt.Sprint("-", k), "job", batch, func(n int) time.Time {
					return time.Now().Add(time.Duration(n%5-2) * 100 * time.Millisecond)
				})
				if !assert.NoError(t, b.Producer.Schedule(context.Background(), list...), "Schedule") {
					return
				}
				mu.Lock()
				ids = append(ids, fleet.IDs(list)...)
				mu.Unlock()
				time.Sleep(scale(150*time.Millisecond, 250*time.Millisecond))
			}
		})
	}
	for range sweepers {
		wg.Go(func() {
			for ctx.Err() == nil {
				at := time.Now().Truncate(time.Millisecond)
				_, err := b.Store.Waiting(context.Background(), at.Add(-2*time.Second), core.Entry{}, at.Add(time.Hour), 1000)
				assert.NoError(t, err, "Waiting")
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	var purged atomic.Int64
	for range purgers {
		wg.Go(func() {
			for ctx.Err() == nil {
				n, err := b.Store.Purge(context.Background(), time.Now().Add(-200*time.Millisecond).Truncate(time.Millisecond), 200)
				if !deadlock(err) { // core tries again with its next purge
					assert.NoError(t, err, "Purge")
				}
				purged.Add(int64(n))
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	fleet.Until(t, 60*time.Second, "all are done", func() bool { return j.completed(ids) == len(ids) })
	for _, w := range all {
		w.stop()
	}
	took := time.Since(began)
	j.wantOnce(t, ids)
	assert.Positive(t, purged.Load())
	assert.Empty(t, j.refused)
	figure(t, "%d producers, %d workers, %d sweepers, %d purgers for %.1f s: %d tasks, %d purged, none lost, no error to a caller; %.2f deadlocks/s on the server, %d reached a scheduler, which tried again",
		producers, workers, sweepers, purgers, took.Seconds(), len(ids), purged.Load(), float64(deadlocks()-before)/took.Seconds(), seen.Load())
}

// deadlock tells whether an error is one of a lost deadlock or lock wait.
func deadlock(err error) bool {
	var refusal *mysql.MySQLError
	return errors.As(err, &refusal) && (refusal.Number == 1213 || refusal.Number == 1205)
}

// counting counts deadlocks in the calls of a scheduler.
type counting struct {
	*hooked
	n *atomic.Int64
}

func (c counting) note(err error) {
	if err != nil && (deadlock(err) || strings.Contains(err.Error(), "1213")) {
		c.n.Add(1)
	}
}

func (c counting) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	claimed, err := c.hooked.Claim(ctx, ids, lease)
	c.note(err)
	return claimed, err
}

func (c counting) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	err := c.hooked.Settle(ctx, now, settlements)
	c.note(err)
	return err
}

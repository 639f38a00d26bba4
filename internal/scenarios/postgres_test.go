package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/pgclaim"
)

// spy keeps the last sweep's statement as it was sent.
type spy struct {
	mu   sync.Mutex
	sql  string
	args []any
}

func (s *spy) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "ORDER BY t.queue, t.due, t.id LIMIT") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sql, s.args = q.SQL, q.Args
	}
	return ctx
}

func (s *spy) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// buffers is how many pages the sweep that was seen last touches now.
func (s *spy) buffers(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	s.mu.Lock()
	sql, args := s.sql, s.args
	s.mu.Unlock()
	require.NotEmpty(t, sql)
	for len(args) > 0 { // what pgx is told beside the arguments
		if _, ok := args[0].(pgx.QueryExecMode); !ok {
			break
		}
		args = args[1:]
	}
	var text []byte
	args = append([]any{pgx.QueryExecModeDescribeExec}, args...)
	require.NoError(t, pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "+sql, args...).Scan(&text))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// https://github.com/riverqueue/river/issues/59 (and brandur.org/postgres-queues):
// a transaction that stays open keeps dead rows from being cleaned up, and fetches that
// walk them get slower without a bound. Right: claims, which go by primary key, stay
// as quick as they were, and what a sweep touches is bounded. (It is so by the rows
// that changed since the old snapshot, which no vacuum can clear away: one page for
// five of them, as measured here. That is the sweep's cost, not the claims'.)
func TestR12AnOldSnapshotSlowsNoClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.Postgres)
	config, err := pgxpool.ParseConfig(b.At.DSN)
	require.NoError(t, err)
	var seen spy
	config.ConnConfig.Tracer = &seen
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	store, err := pgclaim.New(pool, pgclaim.Options{})
	require.NoError(t, err)

	serial := 0
	// cycles schedules, claims and completes n tasks and returns the claims' 99th percentile.
	cycles := func(n int) time.Duration {
		const batch = 25
		var took []time.Duration
		for range n / batch {
			serial++
			list := fleet.Tasks(fmt.Sprint("t", serial), "job", batch, now)
			for i := range list {
				list[i].Due = list[i].Due.Truncate(time.Millisecond)
			}
			require.NoError(t, store.Insert(t.Context(), core.Call{ID: fmt.Sprint("c", serial), Now: list[0].Due}, list))
			began := time.Now()
			grants := granted(t, store, holding(fmt.Sprint("h", serial)), fleet.IDs(list))
			took = append(took, time.Since(began))
			require.NoError(t, settleAll(t, store, grants, core.Done))
		}
		return fleet.Sum(took).P99
	}
	sweep := func(ctx context.Context) {
		at := time.Now().Truncate(time.Millisecond)
		_, err := store.Waiting(ctx, at.Add(-2*time.Second), core.Entry{}, at.Add(3*time.Second), 500)
		assert.NoError(t, err)
	}
	base := cycles(fleet.Rounds(1000, 5000))
	sweep(t.Context())

	old, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { require.NoError(t, old.Rollback(context.Background())) }()
	var n int
	require.NoError(t, old.QueryRow(t.Context(), "SELECT count(*) FROM dueclaim_tasks").Scan(&n))
	stop, sweeps := make(chan struct{}), sync.WaitGroup{}
	sweeps.Go(func() { // the sweeper
		for {
			select {
			case <-stop:
				return
			case <-time.After(250 * time.Millisecond):
				sweep(context.Background())
			}
		}
	})
	all := fleet.Rounds(4000, 50_000)
	during := cycles(all / 4)
	first := seen.buffers(t, pool)
	during = max(during, cycles(all-all/4))
	close(stop)
	sweeps.Wait()
	sweep(t.Context())
	last := seen.buffers(t, pool)
	figure(t, "claim p99 %v, with an old snapshot over %d cycles %v; pages that a sweep touches %d after a quarter of them, %d at the end",
		base.Round(10*time.Microsecond), all, during.Round(10*time.Microsecond), first, last)
	assert.LessOrEqual(t, during, bound(max(5*base, 50*time.Millisecond)))
	assert.LessOrEqual(t, last, all/2+100, "pages")
}

package unknowns

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
)

// starts counts what a scheduler's handlers were called with.
type starts struct {
	mu   sync.Mutex
	of   map[core.ID]int
	more []string // what was wrong with a start
}

// runAll schedules n tasks and runs a scheduler until each has been started and is
// finished in the database. check is asked about each start.
func runAll(t *testing.T, p *place, store core.Store, n int, check func(*core.Job) error) *starts {
	t.Helper()
	seen := &starts{of: map[core.ID]int{}}
	handler := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		err := check(job)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.of[job.Task.ID]++
		if err != nil {
			seen.more = append(seen.more, err.Error())
		}
		return nil
	})
	s, err := core.New(heapindex.New(), store, handler, core.Options{Logger: slog.New(slog.DiscardHandler), Slots: n, Drain: -1})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, s.Run(ctx)) })
	defer running.Wait()
	defer stop()
	require.Eventually(t, func() bool {
		var done int
		err := p.direct.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM dueclaim_tasks WHERE status = 'done'").Scan(&done)
		return err == nil && done == n
	}, 25*time.Second, 20*time.Millisecond, "all are done, long before a lease ends: nothing was left believed to be somebody's")
	return seen
}

// batch inserts tasks that are due, around the proxy.
func batch(t *testing.T, p *place, n int) []core.ID {
	tasks, ids := make([]core.Task, n), make([]core.ID, n)
	now := time.Now()
	for i := range tasks {
		ids[i] = core.ID(fmt.Sprintf("id-%02d", i))
		tasks[i] = core.Task{ID: ids[i], Due: now.Truncate(time.Millisecond)}
	}
	require.NoError(t, newMySQL(t, p.direct, "default").Insert(t.Context(), core.Call{ID: "batch", Now: now}, tasks))
	return ids
}

func (s *starts) onceEach(t *testing.T, ids []core.ID) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Empty(t, s.more)
	for _, id := range ids {
		assert.Equal(t, 1, s.of[id], "starts of %s", id)
	}
}

// https://github.com/pingcap/tidb/issues/34066: "write conflict, try again" for what
// was committed. The claim that took effect is found by its holder: each handler runs
// once, and no task waits for the end of a lease that nobody knows of.
func TestR51AWriteConflictThatWasCommittedIsFoundByItsHolder(t *testing.T) {
	for _, c := range configurations[1:3] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Attr("dueclaim.backend", c.backend)
			p := c.open(t)
			ids := batch(t, p, 50)
			p.counting(t)
			_, random := seeded(t)
			var mu sync.Mutex
			writes := 0
			p.proxy.Each(func(request []byte) wireproxy.Fault {
				mu.Lock()
				defer mu.Unlock()
				if !strings.Contains(string(request), "UPDATE") {
					return wireproxy.Fault{}
				}
				if writes++; writes > 2 && random.IntN(4) > 0 { // the first claim's first two tries, then one in four
					return wireproxy.Fault{}
				}
				return p.refusals[writes%2]
			})
			seen := runAll(t, p, p.store(t, "default"), len(ids), func(job *core.Job) error {
				if job.Attempt != 1 || job.Crashes != 0 {
					return fmt.Errorf("attempt %d, crashes %d of %s", job.Attempt, job.Crashes, job.Task.ID)
				}
				return nil
			})
			p.proxy.Each(nil)
			seen.onceEach(t, ids)
			for _, id := range ids {
				r := p.row(t, id)
				assert.Equal(t, 1, r.Attempts)
				assert.Equal(t, 2, r.Changes, "%s was claimed once and finished once", id)
			}
			n := p.proxy.Injected()[wireproxy.ErrorReply]
			require.GreaterOrEqual(t, n, 2)
			t.Attr("dueclaim.figure", fmt.Sprintf("write conflicts that were committed, %s: 50 tasks, %d of %d writes answered so, each handler ran once", c.name, n, writes))
		})
	}
}

// The same for a user's transaction: its COMMIT fails, and what was in it is there.
// The repeat learns that the grant is settled, and makes nothing twice.
func TestR51ACommitThatFailsAndWasDoneIsNotDoneTwice(t *testing.T) {
	t.Attr("dueclaim.backend", "store:mariadb")
	p := configurations[0].open(t)
	counted(t, p)
	store := newMySQL(t, p.db, "default")
	for i, refusal := range p.refusals {
		x := &trial{store: store, id: core.ID(fmt.Sprint("tx-", i))}
		require.NoError(t, x.insert(t.Context()))
		require.NoError(t, x.claim(t.Context()))
		settle := func() error {
			tx, err := p.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), "UPDATE counted SET n = n + 1 WHERE id = 1"); err != nil {
				return err
			}
			if err := store.SettleTx(t.Context(), tx, at(5), []core.Settlement{{Grant: x.grant, Outcome: core.Done}}); err != nil {
				return err
			}
			return tx.Commit()
		}
		refusal.Needle = "COMMIT"
		p.proxy.Arm(refusal)
		require.ErrorContains(t, settle(), refusal.Code)
		require.ErrorIs(t, settle(), core.ErrLeaseLost, "it was done")
		var n int
		require.NoError(t, p.direct.QueryRowContext(t.Context(), "SELECT n FROM counted").Scan(&n))
		assert.Equal(t, i+1, n, "the user's own write")
	}
}

// https://github.com/kagkarlsson/db-scheduler/issues/73 (and
// https://github.com/quartz-scheduler/quartz/issues/470, #1341): on Galera a
// statement changes its rows, and the COMMIT fails. No handler starts for what was
// rolled back, it is tried again, and no row is left believed to be somebody's.
func TestR38AClaimThatIsRolledBackAtItsCommitStartsNothing(t *testing.T) {
	t.Attr("dueclaim.backend", "store:mariadb")
	p := configurations[0].open(t)
	ids := batch(t, p, 50)
	g := &galera{fails: 3}
	db := closing(t, sql.OpenDB(g.around(t, p.dsn)))
	early := func(job *core.Job) error {
		if g.left() > 0 {
			return errors.New("a handler was started for a claim that was rolled back")
		}
		if job.Attempt != 1 {
			return fmt.Errorf("attempt %d of %s", job.Attempt, job.Task.ID)
		}
		return nil
	}
	store := newMySQL(t, db, "default")

	_, err := store.Claim(t.Context(), ids, core.Lease{Holder: "h", Now: time.Now(), DueBy: time.Now(), Until: time.Now().Add(time.Minute)})
	require.ErrorContains(t, err, "1213")
	require.False(t, answered(err))
	require.Equal(t, []int{50}, g.changed(), "the statement had changed its rows")
	var running int
	require.NoError(t, p.direct.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM dueclaim_tasks WHERE status = 'running'").Scan(&running))
	require.Zero(t, running)

	runAll(t, p, store, len(ids), early).onceEach(t, ids)
	assert.Zero(t, g.left())
	var tokens int
	require.NoError(t, p.direct.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM dueclaim_tasks WHERE attempts = 1 AND token = (SELECT MIN(token) FROM dueclaim_tasks)").Scan(&tokens))
	assert.Equal(t, len(ids), tokens, "granted once each")
	t.Attr("dueclaim.figure", fmt.Sprintf("claims rolled back at their COMMIT: %v rows, 50 tasks, each handler ran once", g.changed()))
}

package scenarios

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
)

// lapsed grants every id to a holder of the test's own, under a lease that is
// over, grace and all.
func lapsed(t *testing.T, s core.Claimer, holder string, ids []core.ID) []core.Grant {
	t.Helper()
	past := time.Now().Truncate(time.Millisecond).Add(-time.Minute)
	return granted(t, s, core.Lease{Holder: holder, Now: past, DueBy: time.Now().Truncate(time.Millisecond), Until: past.Add(time.Second)}, ids)
}

func granted(t *testing.T, s core.Claimer, lease core.Lease, ids []core.ID) []core.Grant {
	t.Helper()
	claimed, err := s.Claim(t.Context(), ids, lease)
	require.NoError(t, err)
	grants := make([]core.Grant, len(ids))
	for i, c := range claimed {
		require.Equal(t, core.Granted, c.Verdict, c.ID)
		grants[i] = c.Grant
	}
	return grants
}

// holding is a lease of the test's own from now on.
func holding(holder string) core.Lease {
	now := time.Now().Truncate(time.Millisecond)
	return core.Lease{Holder: holder, Now: now.Add(-2 * time.Second), DueBy: now, Until: now.Add(time.Minute)}
}

func settleAll(t *testing.T, s core.Claimer, grants []core.Grant, outcome core.Outcome) error {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	list := make([]core.Settlement, len(grants))
	for i, g := range grants {
		list[i] = core.Settlement{Grant: g, Outcome: outcome}
		if outcome != core.Done {
			list[i].Due = now
		}
	}
	return s.Settle(t.Context(), now, list)
}

// https://github.com/riverqueue/river/issues/1302 (and #1373): the rescuer
// overwrote a job that had completed after it was read as stuck. Right: a sweep that is held up between reading and
// taking over changes nothing of a task that was completed, or claimed by
// somebody else, in the gap.
func TestR8ALateRescueDoesNotTouchAFinishedTask(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		ids := b.Schedule(t, "t", "job", 2, func(int) time.Time { return time.Now().Add(-time.Hour) })
		grants := lapsed(t, b.Store, "first", ids)
		held, resume := make(chan struct{}), make(chan struct{})
		var once sync.Once
		store := hook(b.Parts)
		store.beforeClaim = func(context.Context, []core.ID, core.Lease) error {
			once.Do(func() { close(held); <-resume })
			return nil
		}
		j := newJournal()
		w := j.start(t, "sweeper", noIndex{}, store, done, options(time.Minute))
		<-held // both were read as waiting, and are about to be taken over
		require.NoError(t, settleAll(t, b.Store, grants[:1], core.Done))
		newer := granted(t, b.Store, holding("second"), ids[1:])
		before := b.Rows(t)
		close(resume)
		fleet.Until(t, 10*time.Second, "the rescue was answered", func() bool { return j.counted(&j.claims) > 0 && j.counted(&j.swept) > 4 })
		w.stop()
		assert.Equal(t, before, b.Rows(t), "the rows, byte by byte")
		assert.Zero(t, j.total(), "runs")
		assert.Equal(t, newer[0].Token, b.Rows(t)[ids[1]].Token)
		require.NoError(t, settleAll(t, b.Store, newer, core.Done), "the new holder still holds it")
	})
}

// https://github.com/riverqueue/river/pull/1318: one full page of jobs that can
// never be rescued hid all later ones, as each round read the same first page.
// Right: sweeps page on, past rows that nobody here can run and past rows
// that can't be changed. A page of the near sweep has 500 rows here.
func TestR9APageOfRowsThatCannotBeRescuedHidesNothing(t *testing.T) {
	const strange, normal = 600, 50
	early := func(int) time.Time { return time.Now().Add(-2 * time.Hour) }
	late := func(int) time.Time { return time.Now().Add(-time.Hour) }
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		ids := b.Schedule(t, "a", "strange", strange, early)
		locked := b.Schedule(t, "b", "job", strange, early)
		good := b.Schedule(t, "c", "job", normal, late)
		for i, all := range [][]core.ID{ids, locked, good} {
			lapsed(t, b.Store, fmt.Sprint("crashed", i), all)
		}
		// Rows that nobody can change meanwhile.
		tx, err := b.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // so that no other rows are locked
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "SELECT id FROM "+claim.DefaultTable+" WHERE queue = 'default' AND id >= 'b-0000' AND id <= 'b-9999' FOR UPDATE")
		require.NoError(t, err)
		j := newJournal()
		began := time.Now()
		w := j.start(t, "w", noIndex{}, b.Store, done, options(time.Minute))
		fleet.Until(t, time.Minute, "those behind are rescued", func() bool { return j.completed(good) == normal })
		took := time.Since(began)
		assert.Zero(t, j.started(locked), "locked rows")
		require.NoError(t, tx.Rollback())
		fleet.Until(t, 60*time.Second, "the locked ones too, when they can be", func() bool { return j.completed(locked) == strange })
		w.stop()
		j.wantOnce(t, good)
		for _, id := range ids {
			require.Empty(t, j.of(id), "%s: its kind has no handler", id)
		}
		figure(t, "%d rows behind %d of an unknown kind and %d locked ones, all with lapsed leases, no index: rescued after %.1f s", normal, strange, strange, took.Seconds())
	})
}

// https://github.com/quartz-scheduler/quartz/issues/635: a slow recoverer, which had
// read the old acquisition of a trigger, deleted the record of the new one; the trigger was
// stuck. Right: the newer lease stays as it is, and no row is ever running
// without a lease. Here a thousand sweepers stall in one batch.
func TestR42ASweeperThatStalledLeavesTheNewerLeaseAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		const n = 1000
		ids := b.Schedule(t, "t", "job", n, func(int) time.Time { return time.Now().Add(-time.Hour) })
		first := lapsed(t, b.Store, "first", ids)
		stalled := core.Lease{Holder: "stalled", Now: time.Now().Truncate(time.Millisecond).Add(-2 * time.Second), DueBy: time.Now().Truncate(time.Millisecond)}
		stalled.Until = stalled.Now.Add(30 * time.Second)
		read, err := b.Store.Waiting(t.Context(), stalled.Now, core.Entry{}, stalled.DueBy, n)
		require.NoError(t, err)
		require.Len(t, read, n, "all look claimable to the sweeper, which stalls now")
		require.NoError(t, settleAll(t, b.Store, first, core.Released))
		second := granted(t, b.Store, holding("second"), ids)
		before := b.Rows(t)
		answers, err := b.Store.Claim(t.Context(), ids, stalled)
		require.NoError(t, err)
		for _, c := range answers {
			require.Equal(t, core.Held, c.Verdict, c.ID)
		}
		require.ErrorIs(t, settleAll(t, b.Store, first, core.Done), core.ErrLeaseLost)
		require.Equal(t, before, b.Rows(t))
		for id, r := range before {
			require.Equal(t, claim.Running, r.Status, id)
			require.Positive(t, r.LeaseUntil, "%s: running without a lease", id)
		}
		require.NoError(t, settleAll(t, b.Store, second, core.Done))
		require.Equal(t, n, b.Count(t, claim.DoneState))
	})
}

// https://github.com/agenda/agenda/issues/1749: a recurring job was starved for ever
// after a crash: its expired lock was taken again and again though its next run was
// far off. Right: a row whose lease is over and whose due time is in the future
// waits for it, untouched; one without a handler goes back and stays claimable.
// (The row stays "running" with its lapsed lease until it is due; to every reader
// in this project that is a waiting row. And a kind without a handler is looked at
// again within 5 s, by design, so that its token goes on rising.)
func TestR57ALapsedLeaseIsNotRefreshedBeforeItsTaskIsDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		ids := b.Schedule(t, "t", "job", 1, func(int) time.Time { return time.Now().Add(-time.Hour) })
		strange := b.Schedule(t, "s", "strange", 1, func(int) time.Time { return time.Now().Add(-time.Hour) })
		lapsed(t, b.Store, "crashed", append(ids, strange...))
		soon := time.Now().Add(4 * time.Second).Truncate(time.Millisecond) // an hour, in short
		b.Exec(t, fmt.Sprintf("UPDATE %s SET due = %d, planned = %d WHERE id = '%s'", claim.DefaultTable, soon.UnixMilli(), soon.UnixMilli(), ids[0]))
		before := b.Rows(t)[ids[0]]
		j := newJournal()
		w := j.start(t, "w", b.Index, b.Store, done, options(time.Minute))
		fleet.Until(t, 10*time.Second, "the strange one was given back twice", func() bool {
			var n int
			j.locked(func() { n = j.released[strange[0]] })
			return n >= 2
		})
		if time.Now().Before(soon.Add(-100 * time.Millisecond)) { // claimed ahead by 50 ms
			assert.Equal(t, before, b.Rows(t)[ids[0]], "before its due time")
		}
		fleet.Until(t, 20*time.Second, "it runs", func() bool { return j.completed(ids) == 1 })
		w.stop()
		r := j.of(ids[0])
		require.Len(t, r, 1)
		assert.Equal(t, before.Token+1, r[0].token, "one grant more, no refresh loop")
		assert.False(t, r[0].from.Before(soon.Add(-time.Millisecond)), "early")
		assert.Equal(t, 1, r[0].crashes)
		s := b.Rows(t)[strange[0]]
		assert.Equal(t, claim.Pending, s.Status)
		assert.LessOrEqual(t, s.Attempts, 1, "grants that were given back don't count")
	})
}

// inTx stores tasks within an open transaction; end it by commit or rollback.
func inTx(t *testing.T, b *fleet.Bench, list ...core.Task) (commit, rollback func()) {
	t.Helper()
	ctx := t.Context()
	call, err := b.Producer.NewCall(ctx)
	require.NoError(t, err)
	switch store := b.Store.(type) {
	case *mysqlclaim.Store:
		tx, err := b.DB.BeginTx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, store.InsertTx(ctx, tx, call, list))
		return func() { require.NoError(t, tx.Commit()) }, func() { require.NoError(t, tx.Rollback()) }
	case *pgclaim.Store:
		tx, err := b.Pool.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, store.InsertTx(ctx, tx, call, list))
		return func() { require.NoError(t, tx.Commit(ctx)) }, func() { require.NoError(t, tx.Rollback(ctx)) }
	}
	require.FailNow(t, "no transactions on "+b.At.Store)
	return nil, nil
}

// https://github.com/sidekiq/sidekiq/issues/322 (and #2720),
// https://github.com/HangfireIO/Hangfire/issues/1175: a job that was enqueued
// before its record was committed found nothing. Right: a task that is in the index
// while its transaction is still open runs once, within a sweep of the commit; after
// a rollback never, and its entry goes; nobody spins meanwhile.
func TestR27ATaskOfAnOpenTransactionRunsAfterTheCommitOrNever(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		j := newJournal()
		w := j.start(t, "w", b.Index, b.Store, done, options(5*time.Second))
		due := time.Now()
		commit, _ := inTx(t, b, core.Task{ID: "committed", Kind: "job", Due: due})
		_, rollback := inTx(t, b, core.Task{ID: "dropped", Kind: "job", Due: due})
		require.NoError(t, b.Producer.Track(t.Context(), core.Entry{ID: "committed", Due: due}, core.Entry{ID: "dropped", Due: due}))
		open := scale(1500*time.Millisecond, 3*time.Second)
		time.Sleep(open)
		claims := j.counted(&j.claims)
		assert.Less(t, claims, int(20*open.Seconds()), "batches put to the store meanwhile: %d", claims)
		assert.Zero(t, j.total(), "runs before the commit")
		commit()
		committed := time.Now()
		rollback()
		ids := []core.ID{"committed"}
		fleet.Until(t, 20*time.Second, "it runs", func() bool { return j.completed(ids) == 1 })
		took := j.of("committed")[0].from.Sub(committed)
		fleet.Until(t, 20*time.Second, "the index is empty", func() bool { return b.Redis.ZCard(t.Context(), fleet.DueKey).Val() == 0 })
		w.stop()
		j.wantOnce(t, ids)
		assert.Empty(t, j.of("dropped"))
		figure(t, "ran %.2f s after its commit (open for %v); %d batches of claims meanwhile", took.Seconds(), open, claims)
		assert.Less(t, took, bound(3*time.Second), "near sweep 0.25 s, direct claims after two polls of 0.2 s")
	})
}

// https://github.com/apache/rocketmq/issues/9735 (and mxsm/rocketmq-rust#9154): the
// cursor of a timer was stored ahead of its data, and what came in behind it was
// lost. Right: a task that is committed long after sweeps have passed its due time
// and its id is found by the next one: no cursor outlives a sweep.
func TestR34ATaskThatIsCommittedBehindTheSweepIsFound(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		commit, _ := inTx(t, b, core.Task{ID: "0-first", Kind: "job", Due: time.Now().Add(-24 * time.Hour)})
		var stop atomic.Bool
		var filler sync.WaitGroup
		filler.Go(func() { // so that sweeps have something to pass
			for i := 0; !stop.Load(); i++ {
				err := b.Producer.Schedule(context.Background(), fleet.Tasks(fmt.Sprint("z", i), "job", 10, now)...)
				assert.NoError(t, err)
				time.Sleep(50 * time.Millisecond)
			}
		})
		j := newJournal()
		w := j.start(t, "w", b.Index, b.Store, done, options(5*time.Second))
		time.Sleep(scale(1500*time.Millisecond, 5*time.Second))
		fleet.Until(t, 20*time.Second, "the worker works", func() bool { return j.total() > 0 })
		assert.Empty(t, j.of("0-first"))
		commit()
		committed := time.Now()
		fleet.Until(t, 20*time.Second, "it runs", func() bool { return j.completed([]core.ID{"0-first"}) == 1 })
		took := j.of("0-first")[0].from.Sub(committed)
		stop.Store(true)
		filler.Wait()
		w.stop()
		assert.Less(t, took, bound(3*time.Second), "near sweep 0.25 s, direct claims after two polls of 0.2 s")
		figure(t, "ran %.2f s after a commit behind the sweeps", took.Seconds())
	})
}

package scenarios

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// sweepAfter is how long after the end of a lease a task is found: the 2 s that
// others leave it alone, a sweep or a poll, and what a busy machine takes.
const sweepAfter = 2*time.Second + 2*time.Second

// https://github.com/hibiken/asynq/issues/1144 (and #1051, #1158): a task whose
// lease entry vanished from the index stayed active for ever, as only the index
// was scanned for it. Right: a killed worker's tasks run again, found by what the
// database says alone.
func TestR1TasksOfAKilledWorkerRunAgainWithoutTheirIndexEntries(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		const n, lease = 100, 2 * time.Second
		ids := b.Schedule(t, "t", "job", n, now)
		o := orders(b, lease, time.Hour)
		o.Name, o.Slots = "victim", n
		victim := fleet.Start(t, o)
		fleet.Until(t, 20*time.Second, "it runs all", func() bool { return victim.Count(fleet.Started) == n })
		victim.Kill()
		killed := time.Now()
		require.NoError(t, b.Redis.Del(t.Context(), fleet.DueKey).Err())
		require.Zero(t, b.Redis.Exists(t.Context(), fleet.DueKey).Val())
		o = orders(b, lease, 0)
		o.Name, o.Slots = "other", n
		other := fleet.Start(t, o)
		fleet.Until(t, 30*time.Second, "all are done", func() bool { return other.Completed() == n })
		last := time.UnixMicro(other.All(fleet.Started, "")[n-1].At).Sub(killed)
		other.Terminate(t)
		runs := startsOf(victim, other)
		for _, id := range ids {
			require.Len(t, runs[id], 2, id)
			assert.Greater(t, runs[id][1].Token, runs[id][0].Token, id)
			assert.Equal(t, 1, runs[id][1].Crashes, id)
		}
		assert.Less(t, last, bound(lease+sweepAfter+2*time.Second))
		figure(t, "%d tasks of a killed worker, no index entries left: all ran again within %.1f s (lease %v)", n, last.Seconds(), lease)
	})
}

// https://github.com/hibiken/asynq/issues/1015: a task that may not be retried was
// archived when its worker crashed, since the lapsed lease counted as a failure.
// Right: a crash is no failure. The task runs again, with one crash and no failures.
func TestR5ACrashIsNoFailureOfATaskThatMayFailOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.Postgres)
	const lease = time.Second
	task := core.Task{ID: "t", Kind: "job", Due: time.Now(), MaxAttempts: 1}
	require.NoError(t, b.Producer.Schedule(t.Context(), task))
	victim := fleet.Start(t, orders(b, lease, time.Hour))
	fleet.Until(t, 20*time.Second, "it runs", func() bool { return victim.Count(fleet.Started) == 1 })
	victim.Kill()
	require.Equal(t, claim.Running, b.Rows(t)["t"].Status)
	other := fleet.Start(t, orders(b, lease, 0))
	fleet.Until(t, 20*time.Second, "it is done elsewhere", func() bool { return other.Completed() == 1 })
	other.Terminate(t)
	again := other.All(fleet.Started, "")[0]
	assert.Equal(t, 1, again.Crashes)
	assert.Equal(t, 2, again.Attempt)
	assert.Zero(t, again.Failures)
	r := b.Rows(t)["t"]
	assert.Equal(t, claim.DoneState, r.Status)
	assert.Empty(t, r.LastError)
}

// https://github.com/hibiken/asynq/issues/286 (and #334): tasks of a crashed worker
// stayed active for as long as their time-out, half an hour. Right: the lease
// decides alone. There are no time-outs of tasks yet; the handler here is one
// that works for 30 minutes.
func TestR7ACrashedTaskWaitsForItsLeaseNotForItsWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.MariaDB)
	const lease = 2 * time.Second
	figure(t, "%s", fleet.InTime(t, func(t *testing.T, _ int) (string, bool) {
		b.Exec(t, "DELETE FROM "+claim.DefaultTable)
		b.Schedule(t, "t", "job", 1, now)
		victim := fleet.Start(t, orders(b, lease, 30*time.Minute))
		fleet.Until(t, 20*time.Second, "it runs", func() bool { return victim.Count(fleet.Started) == 1 })
		other := fleet.Start(t, orders(b, lease, 0))
		time.Sleep(time.Second) // a heartbeat and more, as the scenario has it
		victim.Kill()
		killed := time.Now()
		fleet.Until(t, 30*time.Second, "it is done elsewhere", func() bool { return other.Completed() == 1 })
		other.Terminate(t)
		again := time.UnixMicro(other.All(fleet.Started, "")[0].At).Sub(killed)
		return "ran again " + again.Round(time.Millisecond).String() + " after the crash (lease 2s)", again <= bound(lease+sweepAfter)
	}))
}

// https://github.com/kagkarlsson/db-scheduler/issues/365: heartbeats ended when the
// shutdown began, and the task that still ran was started elsewhere. Right:
// heartbeats go on until the handler has returned; one run, and then the process ends.
func TestR36HeartbeatsGoOnWhileAShutdownWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.MariaDB)
	const lease = 2 * time.Second
	worked := scale(6*time.Second, 12*time.Second) // past some leases, the grace and a sweep
	b.Schedule(t, "t", "job", 1, now)
	o := orders(b, lease, worked)
	o.Drain = 10 * time.Second
	first := fleet.Start(t, o)
	fleet.Until(t, 20*time.Second, "it runs", func() bool { return first.Count(fleet.Started) == 1 })
	began := time.UnixMicro(first.All(fleet.Started, "")[0].At)
	o = orders(b, lease, 0)
	o.Drain = 10 * time.Second
	second := fleet.Start(t, o)
	first.Terminate(t)
	assert.GreaterOrEqual(t, time.Since(began), worked, "the process ends after its handler")
	second.Terminate(t)
	assert.Equal(t, 1, first.Completed())
	assert.Empty(t, second.All(fleet.Started, ""))
	r := b.Rows(t)["t-0000"]
	assert.Equal(t, claim.DoneState, r.Status)
	assert.Zero(t, r.Crashes)
}

// https://github.com/oban-bg/oban/issues/862: orphans of a node were never rescued
// when a node of the same name came back at once. Right: leases belong to one run
// of one process; the new one neither adopts nor extends those of the old.
func TestR48AWorkerThatComesBackUnderItsOldNameAdoptsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.Postgres)
	const n, lease = 20, 2 * time.Second
	ids := b.Schedule(t, "t", "job", n, now)
	o := orders(b, lease, time.Hour)
	o.Name, o.Slots = "node-1", n
	old := fleet.Start(t, o)
	fleet.Until(t, 20*time.Second, "it runs all", func() bool { return old.Count(fleet.Started) == n })
	old.Kill()
	before := b.Rows(t)
	o = orders(b, lease, 0)
	o.Name, o.Slots = "node-1", n
	again := fleet.Start(t, o)
	fleet.Until(t, 30*time.Second, "all are done", func() bool { return again.Completed() == n })
	again.Terminate(t)
	runs := startsOf(old, again)
	for _, id := range ids {
		require.Len(t, runs[id], 2, id)
		assert.Greater(t, runs[id][1].Token, runs[id][0].Token, "%s: not adopted", id)
		assert.Equal(t, 1, runs[id][1].Crashes, id)
		// Not before the old lease was over, which nobody had extended.
		assert.Greater(t, runs[id][1].At/1000, before[id].LeaseUntil, "%s: the end of the old lease", id)
	}
}

// https://github.com/celery/kombu/issues/305: tasks that were
// reserved and not started disappeared with a deploy. Right: what was claimed and
// not started is pending again without a consumed attempt, what ran is rescued or
// finishes; nothing is lost.
func TestR23ADeployGivesBackWhatWasNotStarted(t *testing.T) {
	t.Parallel()
	const reserved, running, lease, ahead = 50, 4, 8 * time.Second, 2 * time.Second
	cycles := fleet.Rounds(1, 30)
	sem := make(chan struct{}, 6)
	var all sync.WaitGroup
	for i := range cycles {
		all.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			t.Run("", func(t *testing.T) {
				b := newBench(t, []string{fleet.MariaDB, fleet.Postgres}[i%2])
				held := b.Schedule(t, "run", "job", running, now)
				o := orders(b, lease, time.Hour)
				o.Ahead = ahead
				victim := fleet.Start(t, o)
				fleet.Until(t, 20*time.Second, "some run", func() bool { return victim.Count(fleet.Started) == running })
				due := time.Now().Add(3 * time.Second)
				ids := b.Schedule(t, "wait", "job", reserved, func(int) time.Time { return due })
				fleet.Until(t, 20*time.Second, "the others are claimed", func() bool { return b.Count(t, claim.Running) == reserved+running })
				victim.Signal(t, syscall.SIGTERM)
				time.Sleep(time.Second) // the deploy's patience
				require.Len(t, victim.All(fleet.Started, ""), running, "started: was the machine too busy to be asked before the due time?")
				after := b.Rows(t)
				victim.Kill()
				for _, id := range ids {
					assert.Equal(t, claim.Pending, after[id].Status, id)
					assert.Zero(t, after[id].Attempts, "%s: attempts", id)
					assert.Equal(t, due.UnixMilli()+1, after[id].Due, "%s: due as before, rounded up", id)
				}
				next := fleet.Start(t, orders(b, lease, 0))
				fleet.Until(t, 30*time.Second, "all are done", func() bool { return next.Completed() == reserved+running })
				next.Terminate(t)
				runs := startsOf(victim, next)
				for _, id := range ids {
					assert.Len(t, runs[id], 1, id)
				}
				for _, id := range held {
					assert.Len(t, runs[id], 2, id)
				}
			})
		})
	}
	all.Wait()
	figure(t, "%d deploys with %d claimed and %d running tasks: all given back or rescued", cycles, reserved, running)
}

// https://github.com/sidekiq/sidekiq/pull/843 (and #1841, #2159): jobs were popped
// from the schedule before they were pushed, without a bound; a process that died
// in between lost them. Right: a process that dies between index and claim, again
// and again, loses nothing, and takes no more at once than it has slots.
func TestR24ADeathBetweenIndexAndClaimLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.MariaDB)
	n, deaths, largest := fleet.Rounds(3000, 100_000), fleet.Rounds(10, 200), 0
	const lease = 500 * time.Millisecond
	for from := 0; from < n; from += 5000 {
		list := fleet.Tasks("t", "job", n, now)[from:min(n, from+5000)]
		require.NoError(t, b.Producer.Schedule(t.Context(), list...))
	}
	ids := fleet.IDs(fleet.Tasks("t", "job", n, now))
	for range deaths {
		o := orders(b, lease, 0)
		o.Slots, o.DieInClaim = 256, true
		p := fleet.Start(t, o)
		fleet.Until(t, 30*time.Second, "it dies in its first claim", p.Gone)
		for _, e := range p.All(fleet.Dying, "") {
			largest = max(largest, e.N)
		}
	}
	require.Equal(t, n, b.Count(t, claim.Pending), "no claim had an effect")
	assert.LessOrEqual(t, largest, 256)
	require.Positive(t, largest)
	j := newJournal()
	opt := options(5 * time.Second)
	opt.Slots = 256
	w := j.start(t, "w", b.Index, b.Store, done, opt)
	fleet.Until(t, scale(30*time.Second, 300*time.Second), "all are done", func() bool { return j.completed(ids) == n })
	w.stop()
	j.wantOnce(t, ids)
	figure(t, "%d deaths between index and claim, %d tasks due, at most %d ids taken at once: all done, once", deaths, n, largest)
}

// https://github.com/apache/rocketmq/issues/3473: messages were delivered again
// after a restart of the broker during delivery. Right: a shutdown (SIGTERM) doubles nothing; a
// crash (kill -9) doubles at most what was in hand, each under a new token.
func TestR32ARestartDuringDispatchDoublesAtMostWhatACrashInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.Postgres)
	n, cycles := fleet.Rounds(1500, 10_000), fleet.Rounds(2, 20)
	const slots, lease = 50, time.Second
	doubled := 0
	for i := range cycles {
		for _, crash := range []bool{false, true} {
			b.Exec(t, "DELETE FROM "+claim.DefaultTable)
			ids := b.Schedule(t, "t", "job", n, now)
			o := orders(b, lease, 2*time.Millisecond)
			o.Slots, o.Drain = slots, 10*time.Second
			first := fleet.Start(t, o)
			fleet.Until(t, 20*time.Second, "dispatch is under way", func() bool { return first.Completed() > n/10*(1+i%5) })
			if crash {
				first.Kill()
			} else {
				first.Terminate(t)
			}
			require.Less(t, first.Completed(), n, "it was to be interrupted")
			second := fleet.Start(t, o)
			fleet.Until(t, 60*time.Second, "all are done", func() bool { return b.Count(t, claim.DoneState) == n })
			second.Terminate(t)
			twice := 0
			runs := startsOf(first, second)
			for _, id := range ids {
				switch len(runs[id]) {
				case 1:
				case 2:
					twice++
					assert.Greater(t, runs[id][1].Token, runs[id][0].Token, id)
				default:
					t.Errorf("%s ran %d times", id, len(runs[id]))
				}
			}
			doubled += twice
			if crash {
				// In hand: running, or returned and not settled yet; with more of those than a
				// batch and the slots, core claims nothing until there are fewer.
				assert.LessOrEqual(t, twice, 2*slots+500)
			} else {
				assert.Zero(t, twice, "runs twice after a SIGTERM")
			}
		}
	}
	figure(t, "%d tasks, restarted %d times by SIGTERM: none doubled; and %d times by kill -9: %d doubled in all (slots %d)", n, cycles, cycles, doubled, slots)
}

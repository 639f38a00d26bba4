package scenarios

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// sweepAfter is how long after the end of a lease a task is found: the 2 s that
// others leave it alone, a sweep or a poll, and what a busy machine takes.
const sweepAfter = 2*time.Second + 2*time.Second

// https://github.com/hibiken/asynq/issues/1144 (and #1051, #1158): a task whose
// lease entry vanished from the index stayed active for ever, as only the index
// was scanned for it. Right: a killed worker's tasks run again, found by what the
// database says alone.
func TestR1TasksOfAKilledWorkerRunAgainWithoutTheirIndexEntries(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		const n, lease = 100, 2 * time.Second
		ids := b.schedule("t", "job", n, now)
		victim := launch(t, orders{At: b.at, Name: "victim", Slots: n, Lease: lease, Work: time.Hour})
		until(t, 20*time.Second, "it runs all", func() bool { return len(victim.all(evStarted)) == n })
		victim.kill()
		killed := time.Now()
		require.NoError(t, b.redis.Del(t.Context(), dueKey).Err())
		require.Zero(t, b.redis.Exists(t.Context(), dueKey).Val())
		other := launch(t, orders{At: b.at, Name: "other", Slots: n, Lease: lease})
		until(t, 30*time.Second, "all are done", func() bool { return len(other.all(evDone)) == n })
		last := time.UnixMicro(other.all(evStarted)[n-1].At).Sub(killed)
		other.stop()
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
	b := newBench(t, postgres)
	const lease = time.Second
	task := core.Task{ID: "t", Kind: "job", Due: time.Now(), MaxAttempts: 1}
	require.NoError(t, b.producer.Schedule(t.Context(), task))
	victim := launch(t, orders{At: b.at, Lease: lease, Work: time.Hour})
	until(t, 20*time.Second, "it runs", func() bool { return len(victim.all(evStarted)) == 1 })
	victim.kill()
	require.Equal(t, claim.Running, b.rows()["t"].Status)
	other := launch(t, orders{At: b.at, Lease: lease})
	until(t, 20*time.Second, "it is done elsewhere", func() bool { return len(other.all(evDone)) == 1 })
	other.stop()
	again := other.all(evStarted)[0]
	assert.Equal(t, 1, again.Crashes)
	assert.Equal(t, 2, again.Attempt)
	assert.Zero(t, again.Failures)
	r := b.rows()["t"]
	assert.Equal(t, claim.DoneState, r.Status)
	assert.Empty(t, r.LastError)
}

// https://github.com/hibiken/asynq/issues/286 (and #334): tasks of a crashed worker
// stayed active for as long as their time-out, half an hour. Right: the lease
// decides alone. There are no time-outs of tasks yet; the handler here is one
// that works for 30 minutes.
func TestR7ACrashedTaskWaitsForItsLeaseNotForItsWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, mariadb)
	const lease = 2 * time.Second
	inTime(t, func(t *testing.T) (string, bool) {
		b.exec("DELETE FROM " + claim.DefaultTable)
		b.schedule("t", "job", 1, now)
		victim := launch(t, orders{At: b.at, Lease: lease, Work: 30 * time.Minute})
		until(t, 20*time.Second, "it runs", func() bool { return len(victim.all(evStarted)) == 1 })
		other := launch(t, orders{At: b.at, Lease: lease})
		time.Sleep(time.Second) // a heartbeat and more, as the scenario has it
		victim.kill()
		killed := time.Now()
		until(t, 30*time.Second, "it is done elsewhere", func() bool { return len(other.all(evDone)) == 1 })
		other.stop()
		again := time.UnixMicro(other.all(evStarted)[0].At).Sub(killed)
		return "ran again " + again.Round(time.Millisecond).String() + " after the crash (lease 2s)", again <= bound(lease+sweepAfter)
	})
}

// https://github.com/kagkarlsson/db-scheduler/issues/365: heartbeats ended when the
// shutdown began, and the task that still ran was started elsewhere. Right:
// heartbeats go on until the handler has returned; one run, and then the process ends.
func TestR36HeartbeatsGoOnWhileAShutdownWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, mariadb)
	const lease = time.Second
	worked := scale(4*time.Second, 6*time.Second) // four leases, past grace and sweep
	b.schedule("t", "job", 1, now)
	first := launch(t, orders{At: b.at, Lease: lease, Drain: 10 * time.Second, Work: worked})
	until(t, 20*time.Second, "it runs", func() bool { return len(first.all(evStarted)) == 1 })
	began := time.UnixMicro(first.all(evStarted)[0].At)
	second := launch(t, orders{At: b.at, Lease: lease, Drain: 10 * time.Second})
	first.term()
	first.wait()
	assert.GreaterOrEqual(t, time.Since(began), worked, "the process ends after its handler")
	second.stop()
	assert.Len(t, first.all(evDone), 1)
	assert.Empty(t, second.all(evStarted))
	r := b.rows()["t-0000"]
	assert.Equal(t, claim.DoneState, r.Status)
	assert.Zero(t, r.Crashes)
}

// https://github.com/oban-bg/oban/issues/862: orphans of a node were never rescued
// when a node of the same name came back at once. Right: leases belong to one run
// of one process; the new one neither adopts nor extends those of the old.
func TestR48AWorkerThatComesBackUnderItsOldNameAdoptsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, postgres)
	const n, lease = 20, 2 * time.Second
	ids := b.schedule("t", "job", n, now)
	old := launch(t, orders{At: b.at, Name: "node-1", Slots: n, Lease: lease, Work: time.Hour})
	until(t, 20*time.Second, "it runs all", func() bool { return len(old.all(evStarted)) == n })
	old.kill()
	before := b.rows()
	again := launch(t, orders{At: b.at, Name: "node-1", Slots: n, Lease: lease})
	until(t, 30*time.Second, "all are done", func() bool { return len(again.all(evDone)) == n })
	again.stop()
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
	const reserved, running, lease, ahead = 50, 4, 4 * time.Second, time.Second
	cycles := rounds(1, 30)
	sem := make(chan struct{}, 6)
	var all sync.WaitGroup
	for i := range cycles {
		all.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			t.Run("", func(t *testing.T) {
				b := newBench(t, []string{mariadb, postgres}[i%2])
				held := b.schedule("run", "job", running, now)
				victim := launch(t, orders{At: b.at, Lease: lease, Ahead: ahead, Drain: 30 * time.Second, Work: time.Hour})
				until(t, 20*time.Second, "some run", func() bool { return len(victim.all(evStarted)) == running })
				due := time.Now().Add(1500 * time.Millisecond)
				ids := b.schedule("wait", "job", reserved, func(int) time.Time { return due })
				until(t, 20*time.Second, "the others are claimed", func() bool { return b.count(claim.Running) == reserved+running })
				victim.term()
				time.Sleep(time.Second) // the deploy's patience
				require.Len(t, victim.all(evStarted), running, "started: was the machine too busy to be asked before the due time?")
				after := b.rows()
				victim.kill()
				for _, id := range ids {
					assert.Equal(t, claim.Pending, after[id].Status, id)
					assert.Zero(t, after[id].Attempts, "%s: attempts", id)
					assert.Equal(t, due.UnixMilli()+1, after[id].Due, "%s: due as before, rounded up", id)
				}
				next := launch(t, orders{At: b.at, Lease: lease})
				until(t, 30*time.Second, "all are done", func() bool { return len(next.all(evDone)) == reserved+running })
				next.stop()
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
	b := newBench(t, mariadb)
	n, deaths, largest := rounds(3000, 100_000), rounds(10, 200), 0
	const lease = 500 * time.Millisecond
	for from := 0; from < n; from += 5000 {
		list := tasks("t", "job", n, now)[from:min(n, from+5000)]
		require.NoError(t, b.producer.Schedule(t.Context(), list...))
	}
	ids := idsOf(tasks("t", "job", n, now))
	for range deaths {
		p := launch(t, orders{At: b.at, Slots: 256, Lease: lease, DieInClaim: true})
		<-p.ended
		for _, e := range p.all(evDies) {
			largest = max(largest, e.Largest)
		}
	}
	require.Equal(t, n, b.count(claim.Pending), "no claim had an effect")
	assert.LessOrEqual(t, largest, 256)
	require.Positive(t, largest)
	j := newJournal()
	opt := options(5 * time.Second)
	opt.Slots = 256
	w := j.start(t, "w", b.index, b.store, done, opt)
	until(t, scale(30*time.Second, 300*time.Second), "all are done", func() bool { return j.completed(ids) == n })
	w.stop()
	j.wantOnce(t, ids)
	figure(t, "%d deaths between index and claim, %d tasks due, at most %d ids taken at once: all done, once", deaths, n, largest)
}

// https://github.com/apache/rocketmq/issues/3473: messages were delivered again
// after a restart of the broker during delivery. Right: a shutdown (SIGTERM) doubles nothing; a
// crash (kill -9) doubles at most what was in hand, each under a new token.
func TestR32ARestartDuringDispatchDoublesAtMostWhatACrashInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t, postgres)
	n, cycles := rounds(1500, 10_000), rounds(2, 20)
	const slots, lease = 50, time.Second
	doubled := 0
	for i := range cycles {
		for _, crash := range []bool{false, true} {
			b.exec("DELETE FROM " + claim.DefaultTable)
			ids := b.schedule("t", "job", n, now)
			o := orders{At: b.at, Slots: slots, Lease: lease, Drain: 10 * time.Second, Work: 2 * time.Millisecond}
			first := launch(t, o)
			until(t, 20*time.Second, "dispatch is under way", func() bool { return len(first.all(evDone)) > n/10*(1+i%5) })
			if crash {
				first.kill()
			} else {
				first.stop()
			}
			require.Less(t, len(first.all(evDone)), n, "it was to be interrupted")
			second := launch(t, o)
			until(t, 60*time.Second, "all are done", func() bool { return b.count(claim.DoneState) == n })
			second.stop()
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
				// In hand: running, or returned and not settled yet, up to two batches of those.
				assert.LessOrEqual(t, twice, 3*slots)
			} else {
				assert.Zero(t, twice, "runs twice after a SIGTERM")
			}
		}
	}
	figure(t, "%d tasks, restarted %d times by SIGTERM: none doubled; and %d times by kill -9: %d doubled in all (slots %d)", n, cycles, cycles, doubled, slots)
}

package scenarios

import (
	"context"
	"crypto/rand"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/redisindex"
)

// https://github.com/taskforcesh/bullmq/issues/1658 (and #2466, #1656): after a short
// outage of Redis delayed jobs ran hours late, as the wait was not armed again.
// Right: everything that came due meanwhile starts within a poll and a second of
// its end, also where the poller slept for a task that is an hour off.
func TestR15TasksStartSoonAfterAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	outage, step := scale(2*time.Second, 10*time.Second), scale(150*time.Millisecond, time.Second)
	const n = 20
	play := func(t *testing.T, b *fleet.Bench, happen func()) {
		j := newJournal()
		opt := options(20 * time.Second)
		opt.Poll, opt.NearSweep, opt.HorizonSweep = time.Second, time.Second, time.Minute // the defaults
		w := j.start(t, "w", b.Index, b.Store, done, opt)
		b.Schedule(t, "far", "job", 1, func(int) time.Time { return time.Now().Add(time.Hour) })
		began := time.Now().Add(time.Second)
		ids := b.Schedule(t, "t", "job", n, func(i int) time.Time { return began.Add(time.Duration(i) * step) })
		time.Sleep(time.Until(began.Add(step / 2)))
		happen()
		end := time.Now()
		fleet.Until(t, 60*time.Second, "all are done", func() bool { return j.completed(ids) == n })
		w.stop()
		j.wantOnce(t, ids)
		var worst time.Duration
		for _, id := range ids {
			r := j.of(id)[0]
			ready := end
			if r.due.After(ready) {
				ready = r.due
			}
			worst = max(worst, r.from.Sub(ready))
		}
		assert.Less(t, worst, bound(opt.Poll+2*time.Second), "a poll and a second, and another for a busy machine")
		figure(t, "Redis away for %v, %d tasks every %v: the last began %v after its end or its due time; failed calls %v", outage, n, step, worst.Round(time.Millisecond), j.failed)
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, fleet.MariaDB)
		play(t, b, func() {
			b.Server.Stop()
			time.Sleep(outage)
			b.Server.Cont()
		})
	})
	t.Run("killed, restarted with its data", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, fleet.Postgres, "--appendonly", "yes", "--appendfsync", "always")
		play(t, b, func() {
			b.Server.Kill()
			time.Sleep(outage)
			b.Server.Restart()
		})
	})
}

// https://github.com/taskforcesh/bullmq/issues/2215 (and #419): a maxmemory-policy
// other than noeviction evicted the queue's keys, and jobs vanished. Right: nothing
// is lost; the loss is seen and the index rebuilt within a sweep.
func TestR17AnEvictedIndexIsRebuilt(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.MariaDB, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru", "--maxmemory-samples", "64")
	n := fleet.Rounds(1000, 10_000)
	far := b.Schedule(t, "far", "job", n, func(int) time.Time { return time.Now().Add(time.Hour) })
	j := newJournal()
	opt := options(20 * time.Second)
	opt.HorizonSweep = time.Minute // it isn't the next full sweep that repairs
	w := j.start(t, "w", b.Index, b.Store, done, opt)
	fleet.Until(t, 20*time.Second, "all are in the index", func() bool { return b.Redis.ZCard(t.Context(), fleet.DueKey).Val() == int64(n) })
	due := time.Now().Add(2 * time.Second)
	near := b.Schedule(t, "near", "job", 100, func(i int) time.Time { return due.Add(time.Duration(i) * 5 * time.Millisecond) })

	// Fill it up until the index goes; every other key is newer.
	filler := rand.Text()
	for i := 0; b.Redis.Exists(t.Context(), fleet.DueKey).Val() == 1; i++ {
		require.Less(t, i, 20_000, "the key is never evicted")
		for k := range 50 {
			_ = b.Redis.Set(t.Context(), filler+string(rune('a'+i%26))+rand.Text()+string(rune('a'+k%26)), make([]byte, 4000), time.Minute).Err()
		}
	}
	evicted := time.Now()
	require.NoError(t, b.Redis.FlushAll(t.Context()).Err()) // and make room again
	fleet.Until(t, 20*time.Second, "what was due ran", func() bool { return j.completed(near) == len(near) })
	fleet.Until(t, 30*time.Second, "the index is whole again", func() bool { return b.Redis.ZCard(t.Context(), fleet.DueKey).Val() == int64(n) })
	rebuilt := time.Since(evicted)
	// Once more, with nothing due whose lateness could tell of it.
	require.NoError(t, b.Redis.FlushAll(t.Context()).Err())
	fleet.Until(t, 20*time.Second, "the index is whole again, though nothing is late", func() bool { return b.Redis.ZCard(t.Context(), fleet.DueKey).Val() == int64(n) })
	w.stop()
	j.wantOnce(t, near)
	assert.Less(t, j.latest(near), bound(4*time.Second))
	assert.Zero(t, j.started(far))
	figure(t, "index of %d entries evicted: rebuilt after %.1f s, greatest lateness %v, nothing lost", n, rebuilt.Seconds(), j.latest(near).Round(time.Millisecond))
}

// https://github.com/celery/celery/issues/1307 (and #1789): tasks with a future time
// were lost when Redis was restarted, as their reserved copies were in memory alone.
// Right: Redis killed and back empty: future tasks run on time, running ones
// are neither disturbed nor run twice.
func TestR22RedisRestartedEmptyLosesNoTaskAndDisturbsNone(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		n := fleet.Rounds(1000, 10_000)
		const lease, busy = 6 * time.Second, 100
		j := newJournal()
		opt := options(lease)
		opt.Slots = 2 * busy
		release := make(chan struct{})
		w := j.start(t, "w", b.Index, b.Store, func(_ context.Context, job *core.Job) error {
			if job.Task.ID[0] == 'r' {
				<-release // deaf
			}
			return nil
		}, opt)
		running := b.Schedule(t, "running", "job", busy, now)
		fleet.Until(t, 20*time.Second, "they run", func() bool { return j.started(running) == busy })
		due := time.Now().Add(3 * time.Second)
		ids := b.Schedule(t, "t", "job", n, func(i int) time.Time { return due.Add(time.Duration(i) * 2 * time.Second / time.Duration(n)) })
		b.Server.Kill()
		b.Server.Restart()
		fleet.Until(t, 60*time.Second, "future ones ran", func() bool { return j.completed(ids) == n })
		if rest := time.Until(due.Add(lease)); rest > 0 {
			time.Sleep(rest) // the running ones live by their heartbeats meanwhile
		}
		close(release)
		fleet.Until(t, 20*time.Second, "running ones are done", func() bool { return j.completed(running) == busy })
		w.stop()
		j.wantOnce(t, ids)
		j.wantOnce(t, running)
		if crowd() < 2 {
			assert.Zero(t, j.counted(&j.lost), "leases lost")
		}
		assert.Less(t, j.latest(ids), bound(4*time.Second))
		figure(t, "Redis killed and restarted empty, %d future and %d running tasks: all once, greatest lateness %v", n, busy, j.latest(ids).Round(time.Millisecond))
	})
}

// https://github.com/redisson/redisson/issues/2553 (and #4088, #5575): delayed queues
// stopped after a change of the master, as timers and subscriptions had died. Right: the
// loop goes on with the new master, and what it never got is put back by sweeps.
func TestR29ThePromotionOfAReplicaStopsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.Postgres, "--repl-diskless-sync-delay", "0") // its Redis is the old master
	replica := testserver.PrivateRedis(t)
	host, port, err := net.SplitHostPort(b.Server.Addr())
	require.NoError(t, err)
	admin := redis.NewClient(&redis.Options{Addr: replica.Addr(), MaxRetries: -1})
	defer admin.Close()
	require.NoError(t, admin.Do(t.Context(), "REPLICAOF", host, port).Err())
	fleet.Until(t, 20*time.Second, "the replica follows", func() bool {
		return strings.Contains(admin.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})

	// The name of the master, as a sentinel or a managed service would give it.
	var master atomic.Value
	master.Store(b.Server.Addr())
	client := redis.NewClient(&redis.Options{
		Addr: "master:0", ContextTimeoutEnabled: true, MaxRetries: 1,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", master.Load().(string))
		},
	})
	defer client.Close()
	idx, err := redisindex.New(client, redisindex.Options{})
	require.NoError(t, err)

	n, span := fleet.Rounds(300, 1000), scale(4*time.Second, 30*time.Second)
	j := newJournal()
	w := j.start(t, "w", idx, b.Store, done, options(5*time.Second))
	p := newProducer(t, idx, b.Store, core.ProducerOptions{})
	began := time.Now().Add(500 * time.Millisecond)
	list := fleet.Tasks("t", "job", n, func(i int) time.Time { return began.Add(span * time.Duration(i) / time.Duration(n)) })
	require.NoError(t, p.Schedule(t.Context(), list[:n/2]...))
	fleet.Until(t, 20*time.Second, "the replica has them", func() bool { return admin.ZCard(t.Context(), fleet.DueKey).Val() > 0 })
	require.NoError(t, admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err()) // cut off, not promoted yet
	require.NoError(t, p.Schedule(t.Context(), list[n/2:]...))                // never replicated
	time.Sleep(time.Until(began.Add(span / 4)))
	master.Store(replica.Addr())
	host, port, err = net.SplitHostPort(replica.Addr())
	require.NoError(t, err)
	require.NoError(t, b.Redis.Do(t.Context(), "REPLICAOF", host, port).Err()) // from now on it answers READONLY
	promoted := time.Now()
	ids := fleet.IDs(list)
	fleet.Until(t, span+30*time.Second, "all are done", func() bool { return j.completed(ids) == n })
	// What was removed from the old one only goes when the lease would have been over.
	fleet.Until(t, 30*time.Second, "the new master is in use", func() bool { return admin.ZCard(t.Context(), fleet.DueKey).Val() == 0 })
	w.stop()
	j.wantOnce(t, ids)
	assert.Less(t, j.latest(ids), bound(5*time.Second))
	figure(t, "replica promoted in the middle of %d tasks, the later half never replicated: all once, greatest lateness %v; failed calls %v; over %.1f s after the promotion",
		n, j.latest(ids).Round(time.Millisecond), j.failed, time.Since(promoted).Seconds())
}

// https://github.com/redisson/redisson/issues/3599 (and #2997, #1754): after a
// restart nothing was delivered until somebody offered the next item, as the timer
// belonged to the producer. Right: workers that never schedule anything run what is
// overdue within a poll, with and without an index that outlived the producer.
func TestR30OverdueTasksRunWithoutAnyProducer(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T, b *fleet.Bench, mine, theirs core.TimeIndex) {
		const n = 50
		h := fleet.Connect(t, b.At) // the producer's own process, in short
		p := newProducer(t, mine, h.Store, core.ProducerOptions{})
		list := fleet.Tasks("t", "job", n, func(i int) time.Time { return time.Now().Add(time.Duration(i) * 10 * time.Millisecond) })
		require.NoError(t, p.Schedule(t.Context(), list...))
		ids := fleet.IDs(list)
		time.Sleep(time.Until(list[n-1].Due))
		j := newJournal()
		began := time.Now()
		opt := options(20 * time.Second)
		opt.Poll, opt.NearSweep, opt.HorizonSweep = time.Second, time.Second, time.Minute // the defaults
		w := j.start(t, "w", theirs, b.Store, done, opt)
		fleet.Until(t, 30*time.Second, "all are done", func() bool { return j.completed(ids) == n })
		w.stop()
		j.wantOnce(t, ids)
		starts := j.starts(ids)
		last := starts[n-1].Sub(began)
		assert.Less(t, last, bound(opt.Poll+time.Second))
		figure(t, "%d overdue tasks of a producer that is gone: the last began %v after a worker came", n, last.Round(time.Millisecond))
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, fleet.MariaDB)
		play(t, b, b.Index, fleet.Connect(t, b.At).Index)
	})
	t.Run("heap", func(t *testing.T) {
		t.Parallel()
		play(t, newBench(t, fleet.Postgres), heapindex.New(), heapindex.New())
	})
}

// https://github.com/apache/rocketmq/issues/7927: a message was dropped after four
// forwards that failed. Right: while the index can't be reached Schedule succeeds
// (that it could not be told is observed), and every task runs.
func TestR35NothingIsForgottenWhileTheIndexCannotBeReached(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		n, away := fleet.Rounds(100, 500), scale(3*time.Second, 5*time.Minute)
		j := newJournal()
		w := j.start(t, "w", b.Index, b.Store, done, options(20*time.Second))
		told := newJournal() // the producer's own
		p := newProducer(t, b.Index, b.Store, core.ProducerOptions{Observer: told.observer()})
		b.Server.Kill()
		began := time.Now()
		list := fleet.Tasks("t", "job", n, func(i int) time.Time { return began.Add(away * time.Duration(i) / time.Duration(n)) })
		for i, task := range list {
			require.NoError(t, p.Schedule(t.Context(), task), "the store has it")
			if i%10 == 0 {
				time.Sleep(time.Until(began.Add(away * time.Duration(i) / time.Duration(2*n))))
			}
		}
		assert.Equal(t, n, told.counted(&told.unindexed), "tasks of which the index could not be told")
		time.Sleep(time.Until(began.Add(away)))
		ids := fleet.IDs(list)
		fleet.Until(t, 20*time.Second, "all ran while it was away", func() bool { return j.completed(ids) == n })
		b.Server.Restart()
		more := b.Schedule(t, "later", "job", 10, now)
		fleet.Until(t, 20*time.Second, "and others when it is back", func() bool { return j.completed(more) == 10 })
		w.stop()
		j.wantOnce(t, ids)
		assert.Less(t, j.latest(ids), bound(4*time.Second))
		figure(t, "index away for %.0f s: %d of %d tasks scheduled, none refused, all run meanwhile, greatest lateness %v", away.Seconds(), n, n, j.latest(ids).Round(time.Millisecond))
	})
}

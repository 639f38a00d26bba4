package scenarios

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
)

// behind returns handles whose way to the database, and that alone, leads through
// a proxy.
func behind(t *testing.T, b *fleet.Bench) (*fleet.Parts, *wireproxy.Proxy) {
	t.Helper()
	at := b.At
	var proxy *wireproxy.Proxy
	switch at.Store {
	case fleet.MariaDB:
		c, err := mysql.ParseDSN(at.DSN)
		require.NoError(t, err)
		proxy = wireproxy.New(t, wireproxy.MySQL, c.Addr)
		c.Addr = proxy.Addr()
		at.DSN = c.FormatDSN()
	case fleet.Postgres:
		u, err := url.Parse(at.DSN)
		require.NoError(t, err)
		proxy = wireproxy.New(t, wireproxy.Postgres, u.Host)
		u.Host = proxy.Addr()
		at.DSN = u.String()
	}
	return fleet.Connect(t, at), proxy
}

// overlaps counts the runs of ids that began while another one was under way.
func (j *journal) overlaps(ids []core.ID) (n int) {
	j.locked(func() {
		for _, id := range ids {
			for _, r := range j.runs[id] {
				if r.overlapped {
					n++
				}
			}
		}
	})
	return n
}

// https://github.com/kagkarlsson/db-scheduler/issues/402 (and #432): a node that was
// cut off from the database went on with a job that others had taken, as failing
// heartbeats never reached the job. Right: a handler that minds its ctx is
// cancelled before its lease is over, by the process's own clock; others start after that.
func TestR37AHandlerIsCancelledBeforeItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	const n, lease = 10, 2 * time.Second
	times := fleet.Rounds(4, 100)
	sem := make(chan struct{}, 8)
	var mu sync.Mutex
	var all sync.WaitGroup
	cuts, overlaps, nearest := 0, 0, time.Hour
	for i := range times {
		all.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			t.Run("", func(t *testing.T) {
				b := newBench(t, []string{fleet.MariaDB, fleet.Postgres}[i%2])
				a, proxy := behind(t, b)
				j := newJournal()
				wa := j.start(t, "a", a.Index, a.Store, func(ctx context.Context, _ *core.Job) error {
					<-ctx.Done()
					return ctx.Err()
				}, options(lease))
				ids := b.Schedule(t, "t", "job", n, now)
				fleet.Until(t, 20*time.Second, "they run", func() bool { return j.started(ids) == n })
				time.Sleep(lease / 2) // and had a heartbeat
				thaw := proxy.Freeze()
				if j.counted(&j.lost) > 0 {
					t.Log("the machine was too busy for heartbeats: nothing to see here")
					thaw()
					_ = wa.end()
					return
				}
				wb := j.start(t, "b", b.Index, b.Store, done, options(lease))
				time.Sleep(50 * time.Millisecond) // what was on its way has come or not
				leases := b.Rows(t)
				time.Sleep(3 * lease) // b takes over 2 s after a lease's end; afterwards a would be in the race, and run for ever
				thaw()
				fleet.Until(t, time.Minute, "all are done elsewhere", func() bool { return j.completed(ids) == n })
				wb.stop()
				_ = wa.end() // its results may not have been recorded
				mine := j.overlaps(ids)
				mu.Lock()
				defer mu.Unlock()
				cuts++
				overlaps += mine
				for _, id := range ids {
					runs := j.of(id)
					require.GreaterOrEqual(t, len(runs), 2, id)
					require.ErrorIs(t, runs[0].cause, core.ErrLeaseLost, id)
					nearest = min(nearest, time.UnixMilli(leases[id].LeaseUntil).Sub(runs[0].to))
				}
				j.wantOneCompletion(t, ids)
			})
		})
	}
	all.Wait()
	figure(t, "database path cut %d times under %d tasks each: %d overlaps; the last handler returned %v before its lease was over (lease %v)",
		cuts, n, overlaps, nearest.Round(time.Millisecond), lease)
	assert.Positive(t, cuts, "cuts that could be judged")
	assert.LessOrEqual(t, overlaps, times*n/100, "runs that overlapped")
}

// https://github.com/timgit/pg-boss/issues/555: a job that took too long was not
// stopped, and its retry ran beside it. Right: its ctx is cancelled; a handler that is
// deaf to that keeps its slot until it returns; the overlap with the newer run
// shows, and its completion is refused. There are no time-outs of tasks yet, so what
// ends the handler's time here is its lease.
func TestR43ADeafHandlerKeepsItsSlotAndItsCompletionIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		const lease = time.Second
		a, proxy := behind(t, b)
		j := newJournal()
		release := make(chan struct{})
		opt := options(lease)
		opt.Slots = 1
		wa := j.start(t, "a", a.Index, a.Store, func(_ context.Context, job *core.Job) error {
			if job.Task.ID[0] == 'd' {
				<-release
			}
			return nil
		}, opt)
		ids := b.Schedule(t, "deaf", "job", 1, now)
		fleet.Until(t, 20*time.Second, "it runs", func() bool { return j.started(ids) == 1 })
		thaw := proxy.Freeze()
		wb := j.start(t, "b", b.Index, b.Store, done, options(lease))
		fleet.Until(t, 30*time.Second, "it is done elsewhere", func() bool { return j.completed(ids) == 1 })
		wb.stop()
		thaw()
		fleet.Until(t, 10*time.Second, "its lease is lost", func() bool { return j.counted(&j.lost) == 1 })

		others := b.Schedule(t, "others", "job", 3, now)
		time.Sleep(3 * lease)
		assert.Zero(t, j.started(others), "the slot is busy until the handler has returned")
		close(release)
		fleet.Until(t, 20*time.Second, "the others are done", func() bool { return j.completed(others) == 3 })
		wa.stop()
		runs := j.of(ids[0])
		require.Len(t, runs, 2)
		assert.ErrorIs(t, runs[0].cause, core.ErrLeaseLost, "its ctx was cancelled")
		assert.Equal(t, 1, j.overlaps(ids), "the overlap is there to be seen")
		assert.Equal(t, []int64{runs[0].token}, j.refused[ids[0]], "completions that were refused")
		j.wantOneCompletion(t, ids)
		assert.Equal(t, 1, j.most["a"], "handlers at once in one slot")
	})
}

// https://github.com/rails/solid_queue/issues/589 (and #761, #689): a job was
// finished twice, by its late process and by the one that pruned it, and its permit
// was given back twice. Right: of a task that was taken over alive, with both
// handlers coming to their ends, one end is recorded, the newer; slots stay
// counted. (Limits of a queue are not there yet: the limit here is a process's slots.)
func TestR45ATaskThatWasStolenAliveHasOneEnd(t *testing.T) {
	t.Parallel()
	const n, lease = 50, time.Second
	times := fleet.Rounds(2, 4)
	var all sync.WaitGroup
	refused := make([]int, times)
	for i := range times {
		all.Go(func() {
			t.Run("", func(t *testing.T) {
				b := newBench(t, []string{fleet.MariaDB, fleet.Postgres}[i%2])
				a, proxy := behind(t, b)
				j := newJournal()
				var healed, begun sync.WaitGroup
				healed.Add(1)
				begun.Add(n)
				var first sync.Map
				opt := options(lease)
				opt.Slots = n
				both := func(_ context.Context, job *core.Job) error { // deaf; the first to begin is the last to end
					if _, again := first.LoadOrStore(job.Task.ID, true); !again {
						begun.Done()
						healed.Wait()
					}
					return nil
				}
				wa := j.start(t, "a", a.Index, a.Store, both, opt)
				ids := b.Schedule(t, "t", "job", n, now)
				begun.Wait()
				thaw := proxy.Freeze()
				wb := j.start(t, "b", b.Index, b.Store, both, opt)
				fleet.Until(t, 30*time.Second, "all run elsewhere", func() bool {
					return j.total() >= 2*n
				})
				thaw()
				healed.Done()
				fleet.Until(t, 30*time.Second, "both ends of all are answered", func() bool {
					var late int
					j.locked(func() {
						for _, id := range ids {
							late += min(1, len(j.refused[id]))
						}
					})
					refused[i] = late
					return late == n && j.completed(ids) == n
				})
				wa.stop()
				wb.stop()
				j.wantOneCompletion(t, ids)
				for id, r := range b.Rows(t) {
					runs := j.of(id)
					assert.Equal(t, claim.DoneState, r.Status, id)
					assert.Equal(t, runs[len(runs)-1].token, r.Token, "%s: the newest run's", id)
				}
				for _, w := range []string{"a", "b"} {
					assert.LessOrEqual(t, j.most[w], n, "handlers at once in %s", w)
				}
			})
		})
	}
	all.Wait()
	figure(t, "%d tasks stolen alive %d times over, both handlers ended: one completion each, late ones refused %v", n, times, refused)
}

// settleNeedle is part of the statement that records results, and of no other that
// a worker sends.
var settleNeedle = map[string]string{fleet.MariaDB: "t.status = 'done'", fleet.Postgres: "last_error = "}

// https://github.com/rails/solid_queue/issues/748 (and #768, #788): the final UPDATE
// failed once, the error was swallowed, and the job stayed claimed as long as its
// process lived. Right: it is tried again, and counts once; where it can't be
// recorded at all the task's lease ends although the process lives, and somebody
// else runs it.
func TestR46ACompletionThatCannotBeRecordedIsTriedAgainAndThenGivenUp(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		const lease = time.Second
		for _, cut := range []wireproxy.Cut{wireproxy.BeforeRequest, wireproxy.EffectThenCut} {
			for _, times := range []int{1, 5} {
				t.Run(fmt.Sprint(cut, " ", times), func(t *testing.T) {
					a, proxy := behind(t, b)
					for range times {
						proxy.Arm(wireproxy.Fault{Cut: cut, Needle: settleNeedle[b.At.Store]})
					}
					j := newJournal()
					w := j.start(t, "a", a.Index, a.Store, done, options(10*time.Second))
					ids := b.Schedule(t, fmt.Sprint("t", cut, times), "job", 1, now)
					fleet.Until(t, 20*time.Second, "it is done", func() bool { return j.completed(ids) == 1 })
					w.stop()
					assert.Equal(t, times, proxy.Injected()[cut], "faults injected")
					j.wantOnce(t, ids)
					r := b.Rows(t)[ids[0]]
					assert.Equal(t, claim.DoneState, r.Status)
					assert.Equal(t, 1, r.Attempts)
				})
			}
		}
		t.Run("for ever", func(t *testing.T) {
			a, proxy := behind(t, b)
			needle := settleNeedle[b.At.Store]
			for range 1000 {
				proxy.Arm(wireproxy.Fault{Cut: wireproxy.BeforeRequest, Needle: needle})
			}
			j := newJournal()
			wa := j.start(t, "a", a.Index, a.Store, done, options(lease))
			ids := b.Schedule(t, "ever", "job", 1, now)
			fleet.Until(t, 20*time.Second, "it has run", func() bool { return j.started(ids) == 1 })
			wb := j.start(t, "b", b.Index, b.Store, done, options(lease))
			fleet.Until(t, 30*time.Second, "it is done elsewhere", func() bool { return j.completed(ids) == 1 })
			runs := j.of(ids[0])
			last := runs[len(runs)-1]
			assert.Equal(t, "b", last.worker)
			assert.GreaterOrEqual(t, last.crashes, 1)
			for i := range runs[1:] { // the first worker may be the next one too
				assert.Less(t, runs[i+1].from.Sub(runs[i].to), bound(3*lease+sweepAfter), "heartbeats for one lease, the lease, the grace")
			}
			wb.stop()
			proxy.Disarm()
			fleet.Until(t, 20*time.Second, "the late completion is refused", func() bool {
				var n int
				j.locked(func() { n = len(j.refused[ids[0]]) })
				return n > 0
			})
			wa.stop()
			j.wantOneCompletion(t, ids)
		})
	})
}

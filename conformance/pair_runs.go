package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var pairCases = []testCase[*pairEnv]{
	{
		name: "run/each-once",
		rule: "With schedulers in several processes each task runs, exactly one worker gets it, none starts before its due time, and nothing is left in the store or the index.",
		run: func(e *pairEnv) {
			e.measure()
			stop := e.startAll(func(context.Context, *core.Job) error { return nil }, quick())
			ids := manyIDs("n", 300)
			list := make([]core.Task, len(ids))
			start := e.storeNow().Add(100 * time.Millisecond)
			for i, id := range ids {
				list[i] = core.Task{ID: id, Kind: "mail", Due: core.CeilMilli(start.Add(time.Duration(i) * time.Second / time.Duration(len(ids))))}
			}
			e.schedule(list[:200]...)
			require.NoError(e, e.producer(1).Schedule(e.ctx, list[200:]...), "Schedule from another process")
			e.until("each task has run and its completion was accepted", func() bool { return len(e.settled) == len(ids) })
			stop()
			e.wantNothingLeft(e.storeNow().Add(time.Minute))
			for i, id := range ids {
				assert.Len(e, e.ran(id), 1, "runs of %q", id)
				e.wantNotEarly(id, list[i].Due)
			}
			assert.Empty(e, e.lost, "completions that were refused")
		},
	},
	{
		name: "run/changes-honoured",
		rule: "A cancelled task doesn't run; a rescheduled one runs at its new time, whether earlier or later.",
		run: func(e *pairEnv) {
			e.measure()
			now := e.storeNow()
			in := func(ms int) time.Time { return core.CeilMilli(now.Add(time.Duration(ms) * time.Millisecond)) }
			e.schedule(
				core.Task{ID: "cancelled", Due: in(900)}, core.Task{ID: "earlier", Due: in(3_600_000)},
				core.Task{ID: "later", Due: in(900)}, core.Task{ID: "away", Due: in(900)}, core.Task{ID: "last", Due: in(1500)},
			)
			p := e.producer(1)
			fates, err := p.Cancel(e.ctx, "cancelled")
			require.NoError(e, err, "Cancel")
			assert.Equal(e, []core.Fate{core.Cancelled}, fates, "fate")
			require.NoError(e, p.Reschedule(e.ctx,
				core.Move{ID: "earlier", From: in(3_600_000), To: in(300)},
				core.Move{ID: "later", To: in(1200)},
				core.Move{ID: "away", To: in(3_600_000)}), "Reschedule")
			stop := e.startAll(func(context.Context, *core.Job) error { return nil }, quick())
			e.until("earlier, later and last have run", func() bool { return e.settled["earlier"]+e.settled["later"]+e.settled["last"] == 3 })
			stop()
			assert.Empty(e, e.ran("cancelled"), "runs of the cancelled one")
			assert.Empty(e, e.ran("away"), "runs of the one that was put off by an hour")
			for id, due := range map[core.ID]time.Time{"earlier": in(300), "later": in(1200), "last": in(1500)} {
				assert.Len(e, e.ran(id), 1, "runs of %q", id)
				e.wantNotEarly(id, due)
			}
		},
	},
	{
		name: "run/failures",
		rule: "A failed task is retried, not before the time it asked for, until it succeeds or has failed as often as it may; then, or when its handler gives it up, it is dead and doesn't run again.",
		run: func(e *pairEnv) {
			e.measure()
			now := e.storeNow()
			again := core.CeilMilli(now.Add(700 * time.Millisecond))
			opt := quick()
			opt.Backoff = func(int) time.Duration { return 20 * time.Millisecond }
			stop := e.startAll(func(_ context.Context, job *core.Job) error {
				switch {
				case job.Task.ID == "retried" && job.Attempt == 1:
					return core.RetryAt(again, errors.New("not yet"))
				case job.Task.ID == "dead":
					return core.Dead(errors.New("no such account"))
				case job.Task.ID == "fails":
					return errors.New("it's \"broken\"; größe 😀 \x00 \xff")
				case job.Task.ID == "panics" && job.Attempt == 1:
					panic("oh no")
				}
				return nil
			}, opt)
			e.schedule(core.Task{ID: "retried", Due: now}, core.Task{ID: "dead", Due: now}, core.Task{ID: "fails", Due: now, MaxAttempts: 3}, core.Task{ID: "panics", Due: now})
			e.until("2, 1, 3 and 2 attempts were recorded", func() bool {
				return e.settled["retried"] == 2 && e.settled["dead"] == 1 && e.settled["fails"] == 3 && e.settled["panics"] == 2
			})
			stop()
			e.wantNothingLeft(e.storeNow().Add(time.Minute))
			runs := e.ran("retried")
			require.Len(e, runs, 2, "runs of the retried one")
			assert.False(e, runs[1].at.Add(e.ahead).Before(again), "the retry started before the time it asked for")
			for id, want := range map[core.ID]int{"dead": 1, "fails": 3, "panics": 2} {
				runs := e.ran(id)
				require.Len(e, runs, want, "runs of %q", id)
				assert.Equal(e, want, runs[want-1].attempt, "the last Attempt of %q", id)
			}
			fates, err := e.stores[0].Cancel(e.ctx, core.Call{Now: e.storeNow()}, []core.ID{"dead", "fails"})
			require.NoError(e, err)
			assert.Equal(e, []core.Fate{core.Finished, core.Finished}, fates, "dead tasks are kept")
		},
	},
	{
		name: "tick/made-up-time",
		rule: "Tick does one round at the now that it is given: what is due runs once, what isn't doesn't, and a retry and a lapsed lease come due in made-up time.",
		run: func(e *pairEnv) {
			store, idx := e.stores[0], e.idx[0]
			e.schedule(core.Task{ID: "a", Due: base}, core.Task{ID: "b", Due: base}, core.Task{ID: "later", Due: at(600_000)}, core.Task{ID: "crashed", Due: base})
			// A worker that claims and is never heard of again.
			crashed := core.Lease{Holder: "crashed", Now: base, DueBy: base, Until: at(360_000)}
			got, err := store.Claim(e.ctx, []core.ID{"crashed"}, crashed)
			require.NoError(e, err)
			require.Equal(e, core.Granted.String(), got[0].Verdict.String())
			s := e.scheduler(idx, store, func(_ context.Context, job *core.Job) error {
				if job.Task.ID == "b" && job.Attempt == 1 {
					return core.RetryAt(at(120_000), errors.New("again"))
				}
				return nil
			}, quick())
			tick := func(now time.Time, want int, about string) {
				n, err := s.Tick(e.ctx, now)
				require.NoError(e, err, "Tick "+about)
				assert.Equal(e, want, n, "tasks started by a Tick %s", about)
			}
			// Time goes on within a Tick, so that what isn't to be due is far off.
			tick(at(-60_000), 0, "a minute early")
			tick(base, 2, "on the dot")
			tick(base, 0, "again")
			tick(at(120_000), 1, "at the retry, while the crashed worker's lease lasts")
			tick(at(300_000), 0, "a minute before the end of that lease")
			tick(at(370_000), 1, "ten seconds after that end")
			tick(at(600_000), 1, "at the last one's time")
			tick(at(700_000), 0, "when all is done")
			runs := e.ran("crashed")
			require.Len(e, runs, 1, "runs of the one taken over")
			assert.Equal(e, 1, runs[0].crashes, "Crashes")
			assert.Greater(e, runs[0].token, got[0].Grant.Token, "token of the take-over")
			err = store.Settle(e.ctx, at(800_000), []core.Settlement{{Grant: got[0].Grant, Outcome: core.Done}})
			assert.ErrorIs(e, err, core.ErrLeaseLost, "the crashed worker comes back")
			e.wantNothingLeft(at(900_000))
		},
	},
	{
		name: "sweep/index-lost",
		rule: "An index entry that is lost, or never came to be, costs time, not the task.",
		run: func(e *pairEnv) {
			now := e.storeNow()
			ids := manyIDs("n", 50)
			var list []core.Task
			for i, id := range ids {
				list = append(list, core.Task{ID: id, Due: core.CeilMilli(now.Add(time.Duration(i*20) * time.Millisecond))})
			}
			p, err := core.NewProducer(FaultyIndex(e.idx[0], NewFaults(FaultOptions{LoseEntry: 1})), e.stores[0], core.ProducerOptions{})
			require.NoError(e, err)
			require.NoError(e, p.Schedule(e.ctx, list...), "Schedule, its index entries lost")
			stop := e.startAll(func(context.Context, *core.Job) error { return nil }, quick())
			e.until("each task has run", func() bool { return len(e.settled) == len(ids) })
			stop()
			for _, id := range ids {
				assert.Len(e, e.ran(id), 1, "runs of %q", id)
			}
		},
	},
	{
		name: "crash/taken-unclaimed",
		rule: "What a worker took from the index and died before claiming it is run by others soon, not only when the index offers it again.",
		run: func(e *pairEnv) {
			ids := manyIDs("n", 50)
			now := e.storeNow()
			for _, id := range ids {
				e.schedule(core.Task{ID: id, Due: now})
			}
			again := now.Add(time.Hour)
			if u, ok := e.stores[0].(core.Undated); ok && u.Undated() { // only the index knows that nobody holds them
				again = now.Add(2 * time.Second)
			}
			e.takeAll(now, again, len(ids))
			stop := e.startAll(func(context.Context, *core.Job) error { return nil }, quick())
			e.until("each task has run", func() bool { return len(e.settled) == len(ids) })
			stop()
			for _, id := range ids {
				assert.Len(e, e.ran(id), 1, "runs of %q", id)
			}
		},
	},
	{
		name: "drain/gives-back",
		rule: "A scheduler that shuts down gives back what it can't finish, at once and without counting the attempt; what it finishes is recorded.",
		run: func(e *pairEnv) {
			now := e.storeNow()
			var started atomic.Int32
			opt := quick()
			opt.Drain = -1
			stop := e.start(e.scheduler(e.idx[0], e.stores[0], func(ctx context.Context, job *core.Job) error {
				started.Add(1)
				<-ctx.Done()
				if job.Task.ID == "finishes" {
					return nil
				}
				return context.Cause(ctx)
			}, opt))
			ids := manyIDs("n", 5)
			for _, id := range append(ids, "finishes") {
				e.schedule(core.Task{ID: id, Due: now})
			}
			e.until("all six are running", func() bool { return started.Load() == 6 })
			require.NoError(e, stop(), "Run")
			e.until("six settlements were accepted", func() bool { return len(e.settled)+len(e.given) == 6 })
			stop = e.start(e.scheduler(e.idx[1], e.stores[1], func(context.Context, *core.Job) error { return nil }, quick()))
			// Their leases would last for half a minute.
			e.until("another process has run what was given back", func() bool {
				for _, id := range ids {
					if len(e.runs[id]) < 2 || e.settled[id] < 1 {
						return false
					}
				}
				return true
			})
			require.NoError(e, stop(), "Run")
			for _, id := range ids {
				runs := e.ran(id)
				assert.Len(e, runs, 2, "runs of %q", id)
				assert.Equal(e, 1, runs[1].attempt, "Attempt of %q when it ran again", id)
				assert.Equal(e, 0, runs[1].crashes, "Crashes of %q", id)
			}
			assert.Len(e, e.ran("finishes"), 1, "runs of the one that its handler finished")
		},
	},
	{
		name: "crash/taken-over",
		rule: "The tasks of a worker that is cut off are taken over after the end of its lease, never before; at most one completion of each is recorded, and the old holder's is refused.",
		run: func(e *pairEnv) {
			opt := quick()
			opt.Lease = time.Second
			book := newLedger()
			cut := NewFaults(FaultOptions{Fail: 1}) // no call reaches the store
			cut.Stop()
			var started atomic.Int32
			hold := make(chan struct{})
			letGo := sync.OnceFunc(func() { close(hold) })
			stuck := e.start(e.scheduler(e.idx[0], FaultyStore(book.watched(e.stores[0], e.Errorf), cut), func(context.Context, *core.Job) error {
				if started.Add(1) == 20 {
					cut.Start()
				}
				<-hold // deaf to its ctx
				return nil
			}, opt))
			e.cleanup(func() { // before the scheduler is waited for
				cut.Stop()
				letGo()
			})
			ids := manyIDs("n", 20)
			now := e.storeNow()
			for _, id := range ids {
				e.schedule(core.Task{ID: id, Due: now})
			}
			e.until("the worker has all twenty in hand", func() bool { return started.Load() >= 20 })
			stop := e.start(e.scheduler(e.idx[1], book.watched(e.stores[1], e.Errorf), func(context.Context, *core.Job) error { return nil }, opt))
			e.until("another process has run them", func() bool { return len(e.settled) == len(ids) })
			require.NoError(e, stop(), "Run")
			cut.Stop() // the old worker comes back, and says that it is done
			letGo()
			require.NoError(e, stuck(), "Run of the one that was cut off")
			for _, id := range ids {
				runs := e.ran(id)
				require.GreaterOrEqual(e, len(runs), 2, "runs of %q", id) // more where this machine stood still for a lease
				last := runs[len(runs)-1]
				assert.Greater(e, last.token, runs[0].token, "token of %q when it was taken over", id)
				assert.GreaterOrEqual(e, last.crashes, 1, "Crashes of %q", id)
				assert.Equal(e, 1, e.settled[id], "completions of %q that were recorded", id)
			}
			e.wantNoTwoLeases(book)
		},
	},
}

package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pairFaults are the main job on parts that misbehave.
var pairFaults = []testCase[*pairEnv]{
	{
		name: "faults/lossy-index",
		rule: "On an index that loses and doubles entries, fails, and takes effect without a reply, every task runs all the same, never under two live leases at once, and nothing is left.",
		run: func(e *pairEnv) {
			e.survive(func(i int) *Faults {
				f := NewFaults(FaultOptions{Seed: uint64(i), Fail: 0.1, Lose: 0.1, Twice: 0.1, Delay: 0.1, LoseEntry: 0.2, DoubleEntry: 0.2})
				e.idx[i] = FaultyIndex(e.idx[i], f)
				return f
			}, FaultFail, FaultLose, FaultTwice, FaultDelay, FaultLoseEntry, FaultDoubleEntry)
		},
	},
	{
		name: "faults/failing-store",
		rule: "On a store whose calls fail, are done twice, or take effect without a reply, every task's completion is recorded once, never under two live leases at once, and nothing is left.",
		run: func(e *pairEnv) {
			e.survive(func(i int) *Faults {
				f := NewFaults(FaultOptions{Seed: uint64(i), Fail: 0.1, Lose: 0.1, Twice: 0.1, Delay: 0.1})
				e.stores[i] = FaultyStore(e.stores[i], f)
				return f
			}, FaultFail, FaultLose, FaultTwice, FaultDelay)
		},
	},
}

// survive runs the main job with faults in every process, as harm installs
// them, and fails unless each of the kinds was met.
func (e *pairEnv) survive(harm func(process int) *Faults, kinds ...Fault) {
	start := e.storeNow()
	book := newLedger()
	var all []*Faults
	for i := range processes {
		e.stores[i] = book.watched(e.stores[i], e.Errorf)
		all = append(all, harm(i))
	}
	opt := quick()
	opt.Lease = 4 * time.Second // a claim whose every reply is lost ends with it
	opt.Backoff = func(int) time.Duration { return 20 * time.Millisecond }
	var failed sync.Map
	stop := e.startAll(func(ctx context.Context, job *core.Job) error {
		select { // long enough for another look at the task
		case <-time.After(30 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if _, again := failed.LoadOrStore(job.Task.ID, true); !again && len(job.Task.Payload) > 0 {
			return errors.New("the first attempt fails")
		}
		return nil
	}, opt)
	ids := manyIDs("n", 120)
	var list []core.Task
	for i, id := range ids {
		t := core.Task{ID: id, Due: core.CeilMilli(start.Add(time.Duration(i) * 10 * time.Millisecond))}
		if i%4 == 0 {
			t.Payload = []byte("fails once")
		}
		list = append(list, t)
	}
	for at := 0; at < len(list); at += 6 {
		p := e.producer(at / 6 % processes)
		var call core.Call
		require.NoError(e, e.insist(func() (err error) { call, err = p.NewCall(e.ctx); return err }), "NewCall")
		require.NoError(e, e.insist(func() error { return p.ScheduleCall(e.ctx, call, list[at:at+6]...) }), "Schedule")
	}
	e.until("each task is done", func() bool {
		return !slices.ContainsFunc(ids, func(id core.ID) bool { return book.completions(id) == 0 })
	})
	for _, f := range all {
		f.Stop()
	}
	stop()
	for _, id := range ids {
		assert.Equal(e, 1, book.completions(id), "completions of %q that were recorded", id)
	}
	e.wantNoTwoLeases(book)
	e.wantNothingLeft(e.storeNow().Add(time.Minute))
	met := map[Fault]int{}
	for _, f := range all {
		for kind, n := range f.Injected() {
			met[kind] += n
		}
	}
	for _, kind := range kinds {
		assert.Positive(e, met[kind], "faults of the kind %q that were injected", kind)
	}
}

package core_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func TestCallsThatWaitTogetherShareAStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		const took = 10 * time.Millisecond
		s.on = func(_ context.Context, _ statement, insert func() error) error {
			time.Sleep(took)
			return insert()
		}
		const callers, calls = 64, 20
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range calls {
					id, start := fmt.Sprintf("%d-%d", c, i), time.Now()
					assert.NoError(t, s.prod.Schedule(t.Context(), due(id)))
					assert.True(t, s.stored(core.ID(id)), "stored before the return")
					assert.LessOrEqual(t, time.Since(start), 2*took, "waits for one in flight and its own")
				}
			})
		}
		wg.Wait()
		n := 0
		for _, st := range s.statements() {
			n += len(st.ids)
		}
		assert.Equal(t, callers*calls, n, "each task is in one statement")
		assert.Less(t, len(s.statements()), callers*calls/20)
		assert.Len(t, s.idx.added(), len(s.statements()), "one call to the index each")
	})
}

func TestACallByItselfGoesAtOnceInItsOwnGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		type key struct{}
		s.on = func(ctx context.Context, _ statement, insert func() error) error {
			assert.Equal(t, "mine", ctx.Value(key{}))
			stack := make([]byte, 1<<16)
			assert.Contains(t, string(stack[:runtime.Stack(stack, false)]), "TestACallByItselfGoesAtOnce")
			return insert()
		}
		start := time.Now()
		for i := range 10 {
			require.NoError(t, s.prod.Schedule(context.WithValue(t.Context(), key{}, "mine"), due(fmt.Sprint(i))))
		}
		assert.Len(t, s.statements(), 10)
		assert.Zero(t, time.Since(start))
	})
}

func TestACtxThatEndsInTheQueueEndsItsCallWithNothingStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.crowd()
		ctx, cancel := context.WithCancel(t.Context())
		leaves, stays := s.call(ctx, due("a")), s.call(t.Context(), due("b"))
		cancel()
		err := <-leaves
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "nothing was stored")
		late := <-s.call(ctx, due("c"))
		require.ErrorIs(t, late, context.Canceled)
		for _, err := range []error{err, late} {
			var unknown *core.OutcomeError
			require.NotErrorAs(t, err, &unknown)
		}
		s.open()
		require.NoError(t, <-stays)
		require.Len(t, s.statements(), 1)
		assert.Equal(t, []core.ID{"b"}, s.statements()[0].ids)
		assert.False(t, s.stored("a"))
		assert.False(t, s.stored("c"))
	})
}

func TestInsertsThatHangHoldUpNewcomersForATenthOfASecondOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.crowd()
		start := time.Now()
		var waiting []<-chan error
		for i := range 2500 {
			waiting = append(waiting, s.call(t.Context(), due(fmt.Sprint(i))))
		}
		for _, answer := range waiting {
			require.NoError(t, <-answer)
		}
		assert.Equal(t, 100*time.Millisecond, time.Since(start))
		assert.Len(t, s.statements(), 3, "shared all the same, a thousand tasks each")
	})
}

func TestACallThatIsToBeRepeatedHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.on = func(_ context.Context, st statement, insert func() error) error {
			if st.has("fails") || st.has("fails too") {
				return errAway
			}
			return insert()
		}
		a, b := s.call(t.Context(), due("fails")), s.call(t.Context(), due("fails too"))
		start := time.Now()
		for i := range 3 {
			require.NoError(t, s.prod.Schedule(t.Context(), due(fmt.Sprint(i))))
		}
		assert.Zero(t, time.Since(start))
		require.ErrorIs(t, <-a, errAway)
		require.ErrorIs(t, <-b, errAway)
	})
}

func TestTheQueueIsServedInOrderAPageAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.crowd()
		var first []core.ID // of each call
		var waiting []<-chan error
		for c := range 45 {
			var tasks []core.Task
			size, payload := 10, 25<<10
			if c >= 30 {
				size, payload = 60, 0
			}
			for i := range size {
				task := due(fmt.Sprintf("%d-%d", c, i))
				task.Payload = make([]byte, payload)
				tasks = append(tasks, task)
			}
			first = append(first, tasks[0].ID)
			waiting = append(waiting, s.call(t.Context(), tasks...))
		}
		s.open()
		for _, answer := range waiting {
			require.NoError(t, <-answer)
		}
		got := map[core.ID]int{} // the number of the statement
		for i, st := range s.statements() {
			assert.LessOrEqual(t, len(st.ids), 1000)
			for _, id := range st.ids {
				got[id] = i
			}
		}
		require.Len(t, s.statements(), 3)
		assert.Len(t, got, 30*10+15*60)
		// Statements that take off together may come to the store in either order.
		for i, id := range first {
			page := 0 // 16 calls fill 4 MiB
			switch {
			case i >= 44:
				page = 44
			case i >= 16: // 14 calls of 10 tasks and 14 of 60 fill 1000
				page = 16
			}
			assert.Equal(t, got[first[page]], got[id], id)
		}
	})
}

func TestLargeCallsNeitherWaitNorShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.crowd()
		start := time.Now()
		large := due("large")
		large.Payload = make([]byte, 300<<10)
		require.NoError(t, s.prod.Schedule(t.Context(), large))
		var many []core.Task
		for i := range 1500 {
			many = append(many, due(fmt.Sprint(i)))
		}
		require.NoError(t, s.prod.Schedule(t.Context(), many...))
		call, err := s.prod.NewCall(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.prod.ScheduleCall(t.Context(), call, due("own")))
		assert.Zero(t, time.Since(start))
		all := s.statements()
		require.Len(t, all, 4)
		assert.Equal(t, call.ID, all[3].call.ID)
	})
}

// latentInserts takes a millisecond for each statement.
type latentInserts struct {
	core.Store
	n atomic.Int64
}

func (s *latentInserts) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	s.n.Add(1)
	time.Sleep(time.Millisecond)
	return s.Store.Insert(ctx, call, tasks)
}

func BenchmarkSchedule64(b *testing.B) {
	store := &latentInserts{Store: claim.NewMemory(claim.MemoryOptions{})}
	prod, err := core.NewProducer(heapindex.New(), store, core.ProducerOptions{Logger: quiet()})
	require.NoError(b, err)
	var n atomic.Int64
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := prod.Schedule(b.Context(), due(fmt.Sprint(n.Add(1)))); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(n.Load())/float64(store.n.Load()), "tasks/statement")
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "tasks/s")
}

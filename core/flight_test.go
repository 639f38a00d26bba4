package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

func items(t *testing.T, err error) []core.ItemError {
	t.Helper()
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	return batch.Items
}

func TestCallersOfOneStatementLearnOfTheirOwnItemsByTheirOwnPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		require.NoError(t, s.prod.Schedule(t.Context(), due("old1"), due("old2")))
		s.crowd()
		a := s.call(t.Context(), due("a"), due("old1"), due("bad "), due("a2"))
		b := s.call(t.Context(), due("b"))
		c := s.call(t.Context(), due("bad "), due("c"), due("c"), due("old2"))
		none := s.call(t.Context(), due(" bad"))
		require.ErrorIs(t, items(t, <-none)[0], core.ErrInvalid, "answered without a statement")
		s.open()
		got := items(t, <-a)
		require.Len(t, got, 2)
		assert.Equal(t, core.ItemError{Index: 1, ID: "old1", Err: core.ErrExists}, got[0])
		assert.Equal(t, 2, got[1].Index)
		require.ErrorIs(t, got[1], core.ErrInvalid)
		require.NoError(t, <-b)
		got = items(t, <-c)
		require.Len(t, got, 3)
		assert.Equal(t, []int{0, 2, 3}, []int{got[0].Index, got[1].Index, got[2].Index})
		require.ErrorContains(t, got[1], "twice, first as item 1")
		require.ErrorIs(t, got[2], core.ErrExists)
		require.Len(t, s.statements(), 2, "the first one, and one for all")
		assert.Equal(t, []int{2, 4}, s.idx.added(), "a, a2, b and c go into the index together")
	})
}

func TestASecondCallerOfAnIdComesAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.on = func(ctx context.Context, st statement, insert func() error) error {
			if err := insert(); err != nil || !st.has("done") {
				return err
			}
			_, err := s.store.Cancel(ctx, core.Call{Now: time.Now()}, []core.ID{"done"}) // no longer live when the next one comes
			return err
		}
		s.crowd()
		one := s.call(t.Context(), due("x"), due("done"))
		two := s.call(t.Context(), due("y"), due("x"))
		three := s.call(t.Context(), due("done"))
		four := s.call(t.Context(), due("z"))
		s.open()
		require.NoError(t, <-one)
		got := items(t, <-two)
		require.Len(t, got, 1)
		assert.Equal(t, core.ItemError{Index: 1, ID: "x", Err: core.ErrExists}, got[0])
		require.NoError(t, <-three)
		require.NoError(t, <-four)
		all := s.statements()
		require.Len(t, all, 2)
		assert.Equal(t, []core.ID{"x", "done", "z"}, all[0].ids, "who has nothing to do with it doesn't wait")
		assert.Equal(t, []core.ID{"y", "x", "done"}, all[1].ids)
		assert.NotEqual(t, all[0].call.ID, all[1].call.ID)
	})
}

func TestACtxThatEndsInFlightEndsItsOwnCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := atomic.Int32{}
		s := newStation(t, core.ProducerOptions{Observer: core.Observer{Failed: func(string, error) { failed.Add(1) }}})
		land := make(chan struct{})
		s.on = func(_ context.Context, _ statement, insert func() error) error {
			<-land
			return insert()
		}
		s.crowd()
		ctx, cancel := context.WithCancel(t.Context())
		task := due("leaves")
		task.Payload = []byte("as it was")
		leaves, stays := s.call(ctx, task), s.call(t.Context(), due("stays"))
		s.open()
		synctest.Wait()
		cancel()
		err := <-leaves // before the store has answered
		var unknown *core.OutcomeError
		require.ErrorAs(t, err, &unknown)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, int32(1), failed.Load())
		task.Payload[0] = '!' // the caller's again
		close(land)
		require.NoError(t, <-stays)
		row, _ := s.store.Task("leaves")
		assert.Equal(t, "as it was", string(row.Payload))
		require.NoError(t, s.prod.ScheduleCall(t.Context(), unknown.Call, task), "recognised")
		require.ErrorIs(t, s.prod.Schedule(t.Context(), task), core.ErrExists)
	})
}

func TestACtxThatEndsWhileOnlyTheIndexIsLeftToBeToldChangesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		told := make(chan struct{})
		s.idx.on = func() { <-told }
		s.crowd()
		ctx, cancel := context.WithCancel(t.Context())
		a, b := s.call(ctx, due("a")), s.call(t.Context(), due("b"))
		s.open()
		synctest.Wait()
		cancel()
		synctest.Wait()
		assert.Empty(t, a, "it waits for the index")
		close(told)
		require.NoError(t, <-a)
		require.NoError(t, <-b)
	})
}

// The statement is cancelled when the last caller leaves, and has ended when that
// returns: the bubble of synctest would not end with a goroutine left.
func TestNothingOfASharedStatementOutlivesItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		var running atomic.Int32
		s.on = func(ctx context.Context, _ statement, _ func() error) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			time.Sleep(time.Millisecond) // a driver that takes its time
			return ctx.Err()
		}
		s.crowd()
		first, leave := context.WithCancel(t.Context())
		last, leaveToo := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer leaveToo()
		start := time.Now()
		a, b := s.call(first, due("a")), s.call(last, due("b"))
		s.open()
		synctest.Wait()
		leave()
		require.ErrorIs(t, <-a, context.Canceled)
		assert.Equal(t, int32(1), running.Load(), "b is still there")
		err := <-b
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var unknown *core.OutcomeError
		require.ErrorAs(t, err, &unknown)
		assert.Zero(t, running.Load())
		assert.Equal(t, 501*time.Millisecond, time.Since(start), "not before the store's return, not long after its cancellation")
		assert.Len(t, s.statements(), 1, "no repeat for nobody")
	})
}

func TestUnknownOutcomeOfASharedStatementIsEachCallersToRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		lose := true
		s.on = func(_ context.Context, _ statement, insert func() error) error {
			err := insert()
			if lose { // stored, the reply lost every time
				return errAway
			}
			return err
		}
		s.crowd()
		tasks := []core.Task{due("a"), due("b"), due("c")}
		var waiting []<-chan error
		for _, task := range tasks {
			waiting = append(waiting, s.call(t.Context(), task))
		}
		s.open()
		var calls []core.Call
		for _, answer := range waiting {
			err := <-answer
			var unknown *core.OutcomeError
			require.ErrorAs(t, err, &unknown)
			require.ErrorIs(t, err, errAway)
			calls = append(calls, unknown.Call)
		}
		assert.Equal(t, calls[0], calls[2], "the call that they shared")
		assert.Len(t, s.statements(), 2+3*5, "twice together, five times each")
		lose = false
		for i, task := range tasks {
			require.ErrorIs(t, s.prod.Schedule(t.Context(), task), core.ErrExists, "another call")
			require.NoError(t, s.prod.ScheduleCall(t.Context(), calls[i], task), "a repeat of the same call")
		}
	})
}

func TestALostDeadlockIsRepeatedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		n := 0
		s.on = func(_ context.Context, _ statement, insert func() error) error {
			if n++; n == 1 {
				return errors.New("deadlock found")
			}
			return insert()
		}
		s.crowd()
		a, b := s.call(t.Context(), due("a")), s.call(t.Context(), due("b"))
		s.open()
		require.NoError(t, <-a)
		require.NoError(t, <-b)
		all := s.statements()
		require.Len(t, all, 2)
		assert.Equal(t, all[0].call.ID, all[1].call.ID)
	})
}

func TestATableThatIsNotThereIsSaidToEachCallerOfAStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.on = func(context.Context, statement, func() error) error { return core.ErrNotMigrated }
		s.crowd()
		a, b := s.call(t.Context(), due("a")), s.call(t.Context(), due("b"))
		s.open()
		for _, answer := range []<-chan error{a, b} {
			err := <-answer
			require.ErrorIs(t, err, core.ErrNotMigrated)
			var unknown *core.OutcomeError
			require.NotErrorAs(t, err, &unknown)
		}
		assert.Len(t, s.statements(), 1, "a repeat would not help")
	})
}

// What took effect is not repeated, as it may have gone on since.
func TestOnlyTheCallerWhoseRowWasLockedTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.Store = &busyOnce{Store: s.store, then: func() {}}
		s.crowd()
		start := time.Now()
		a := s.call(t.Context(), due("a"))
		b := s.call(t.Context(), due("bad "), due("b"), due("busy"), due("b2"))
		s.open()
		require.NoError(t, <-a)
		assert.Zero(t, time.Since(start), "a doesn't wait for it")
		got := items(t, <-b)
		require.Len(t, got, 1)
		assert.Zero(t, got[0].Index)
		all := s.statements()
		require.Len(t, all, 2)
		assert.Equal(t, []core.ID{"busy"}, all[1].ids)
		assert.Equal(t, all[0].call.ID, all[1].call.ID)
		assert.True(t, s.stored("busy"))
		assert.Equal(t, []int{3, 1}, s.idx.added(), "what was stored at once, then the last")
	})
}

func TestOneIndexFailureForAStatementIsObservedOnceAndNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []int
		s := newStation(t, core.ProducerOptions{
			Horizon: time.Hour,
			Observer: core.Observer{NotIndexed: func(n int, _ error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, n)
			}},
		})
		idx := &lossyIndex{TimeIndex: s.idx.TimeIndex}
		s.idx.TimeIndex = idx
		s.crowd()
		var waiting []<-chan error
		for i := range 5 {
			waiting = append(waiting, s.call(t.Context(), due(fmt.Sprint(i))))
		}
		far := due("far")
		far.Due = far.Due.Add(2 * time.Hour)
		waiting = append(waiting, s.call(t.Context(), far))
		idx.away.Store(true)
		s.open()
		for _, answer := range waiting {
			require.NoError(t, <-answer)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(told)
		assert.Equal(t, []int{1, 1, 5}, told, "the two in the way, then all but the one beyond the horizon, which is the sweep's")
	})
}

func TestASharedStatementThatMayHaveBeenDoneIsOfUnknownOutcome(t *testing.T) {
	for name, first := range map[string]func(insert func() error) error{
		"the reply was lost": func(insert func() error) error { _ = insert(); return errAway },
		"a row was locked":   func(insert func() error) error { return insert() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStation(t, core.ProducerOptions{})
				n := 0
				s.on = func(ctx context.Context, st statement, insert func() error) error {
					if n++; n > 1 {
						return errReadOnly
					}
					err := first(insert)
					if i := slices.Index(st.ids, "locked"); err == nil && i >= 0 { // and not stored, as it were
						err = core.NewBatchError([]core.ItemError{{Index: i, ID: "locked", Err: core.ErrBusy}})
					}
					return err
				}
				s.crowd()
				a, b := s.call(t.Context(), due("a"), due("locked")), s.call(t.Context(), due("b"))
				s.open()
				var unknown *core.OutcomeError
				require.ErrorAs(t, <-a, &unknown)
				if err := <-b; err != nil {
					require.ErrorAs(t, err, &unknown)
				}
				require.True(t, s.stored("a"))
			})
		})
	}
}

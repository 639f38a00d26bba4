package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// namedIndex is a heap with a generation, which flush changes.
type namedIndex struct {
	atomic.Pointer[heapindex.Index]
	name   atomic.Int64
	broken atomic.Bool // it works, but not as it should
}

func newNamedIndex() *namedIndex {
	x := &namedIndex{}
	x.Store(heapindex.New())
	x.name.Store(1)
	return x
}

func (x *namedIndex) flush() {
	x.Store(heapindex.New())
	x.name.Add(1)
}

func (x *namedIndex) Generation(context.Context) (string, error) {
	name := fmt.Sprint(x.name.Load())
	if x.broken.Load() {
		return name, errAway
	}
	return name, nil
}

func (x *namedIndex) Add(ctx context.Context, entries []core.Entry) error {
	return x.Load().Add(ctx, entries)
}

func (x *namedIndex) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	return x.Load().Due(ctx, now, limit)
}

func (x *namedIndex) Move(ctx context.Context, moves []core.Move) error {
	return x.Load().Move(ctx, moves)
}

func (x *namedIndex) Remove(ctx context.Context, entries []core.Entry) error {
	return x.Load().Remove(ctx, entries)
}

// scheduleFar schedules n tasks for an hour from now.
func scheduleFar(t *testing.T, p parts, idx core.TimeIndex, n int) {
	t.Helper()
	producer, err := core.NewProducer(idx, p.store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, producer.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint("far-", i)), Due: time.Now().Add(time.Hour)}))
	}
}

func TestAnIndexThatSaysItHasLostEntriesIsFilledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := newNamedIndex()
		var told atomic.Int32
		opt := core.Options{HorizonSweep: time.Hour, Observer: core.Observer{IndexLost: func(was, now string) {
			assert.NotEqual(t, was, now)
			told.Add(1)
		}}}
		var stops []func() error
		for range 3 { // many that rebuild are as good as one
			stops = append(stops, running(t, newScheduler(t, idx, p.store, &recorder{}, opt)))
		}
		scheduleFar(t, p, idx, 1500)
		time.Sleep(10 * time.Second)
		for n := range 3 {
			idx.flush()
			time.Sleep(1500 * time.Millisecond)
			assert.Equal(t, 1500, idx.Load().Len(), "flush %d", n)
		}
		assert.Equal(t, int32(9), told.Load())
		for _, stop := range stops {
			require.NoError(t, stop())
		}
	})
}

// slowWaiting makes each page of waiting rows take a while.
func slowWaiting(op string, call func() error) error {
	if op == "waiting" {
		time.Sleep(500 * time.Millisecond)
	}
	return call()
}

func TestALossDuringARebuildIsMadeGoodToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := newNamedIndex()
		store := &hookedStore{Store: p.store}
		scheduleFar(t, p, idx, 20_000)
		stop := running(t, newScheduler(t, idx, store, &recorder{}, core.Options{HorizonSweep: time.Hour}))
		time.Sleep(time.Minute)
		store.set(slowWaiting) // a sweep of 21 pages takes 10 s
		idx.flush()
		time.Sleep(6 * time.Second)
		assert.Positive(t, idx.Load().Len(), "the rebuild is at work")
		idx.flush()
		time.Sleep(25 * time.Second)
		assert.Equal(t, 20_000, idx.Load().Len())
		require.NoError(t, stop())
	})
}

func TestAnIndexThatBeginsToFailIsMadeGoodByASweepAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := &lossyIndex{TimeIndex: p.idx}
		var worst atomic.Int64
		opt := core.Options{NearSweep: 10 * time.Second, Observer: core.Observer{Started: func(_ *core.Job, late time.Duration) {
			worst.Store(max(worst.Load(), int64(late)))
		}}}
		r := &recorder{}
		stop := running(t, newScheduler(t, idx, p.store, r, opt))
		time.Sleep(15 * time.Second)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "a", Due: time.Now()}))
		idx.away.Store(true)
		time.Sleep(3 * time.Second)
		assert.Equal(t, 1, r.get("a"))
		assert.Less(t, time.Duration(worst.Load()), 1100*time.Millisecond, "a poll, not a near sweep")
		require.NoError(t, stop())
	})
}

func TestHealthTellsOfSweepsTheClockAndReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := newNamedIndex()
		store := &skewedStore{Store: &hookedStore{Store: p.store}}
		store.skew.Store(int64(5 * time.Minute))
		s := newScheduler(t, idx, store, &recorder{}, core.Options{})
		h := s.Health()
		assert.False(t, h.Running)
		require.ErrorIs(t, h.Ready(), core.ErrNotReady)
		require.ErrorContains(t, h.Ready(), "not running")

		stop := running(t, s)
		time.Sleep(10 * time.Second)
		h = s.Health()
		require.NoError(t, h.Ready())
		assert.True(t, h.Store.OK && h.Index.OK && h.Sweep.OK)
		assert.WithinDuration(t, time.Now(), h.Swept, 2*time.Second)
		assert.Equal(t, 5*time.Minute, h.ClockOffset.Round(time.Second))
		assert.False(t, h.ClockRead.IsZero())

		idx.broken.Store(true)
		time.Sleep(2 * time.Second)
		h = s.Health()
		assert.False(t, h.Index.OK, "it works, but says that it is not as it should be")
		require.ErrorIs(t, h.Index.Err, errAway)
		require.NoError(t, h.Ready(), "tasks run without an index")
		idx.broken.Store(false)

		store.Store.(*hookedStore).set(failing("waiting", "claim"))
		time.Sleep(5 * time.Second)
		h = s.Health()
		assert.True(t, h.Index.OK)
		require.ErrorIs(t, h.Index.LastErr, errAway, "the last failure stays known")
		assert.False(t, h.Sweep.OK)
		assert.False(t, h.Store.OK)
		require.ErrorIs(t, h.Ready(), core.ErrNotReady)
		require.ErrorIs(t, h.Ready(), errAway)
		assert.WithinDuration(t, time.Now(), h.Store.Since, 6*time.Second)
		require.NoError(t, stop())
		assert.False(t, s.Health().Running)
	})
}

// warner is an index with a set-up that can't be read at first.
type warner struct {
	core.TimeIndex
	asked atomic.Int32
}

func (w *warner) CheckSetup(context.Context) ([]string, error) {
	if w.asked.Add(1) < 3 {
		return nil, errors.New("not yet")
	}
	return []string{"the disk is a floppy"}, nil
}

func TestWarningsOfABackendsSetUpAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := &warner{TimeIndex: p.idx}
		var out logBook
		stop := running(t, newScheduler(t, idx, p.store, &recorder{}, core.Options{Logger: out.logger()}))
		time.Sleep(10 * time.Minute)
		require.NoError(t, stop())
		assert.Equal(t, int32(3), idx.asked.Load())
		assert.Len(t, out.with("the disk is a floppy"), 1)
	})
}

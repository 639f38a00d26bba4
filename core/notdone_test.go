package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// turning is a store whose answers to Insert are made up, one after the other; then, and
// where one is nil, its own.
type turning struct {
	*claim.Memory
	inserts  []error
	readOnly atomic.Bool
}

func (s *turning) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if len(s.inserts) > 0 {
		err := s.inserts[0]
		s.inserts = s.inserts[1:]
		if err != nil {
			return err
		}
	}
	return s.Memory.Insert(ctx, call, tasks)
}

var errReadOnly = fmt.Errorf("insert: %w: the server is read-only", core.ErrNotDone)

func (s *turning) Probe(context.Context) error {
	if s.readOnly.Load() {
		return errReadOnly
	}
	return nil
}

func TestWhatWasNotDoneIsNoUnknownOutcome(t *testing.T) {
	lost := errors.New("the reply was lost")
	always := func(err error, n int) (list []error) {
		for range n {
			list = append(list, err)
		}
		return list
	}
	for name, c := range map[string]struct {
		inserts []error
		tasks   int
		unknown bool
		stored  bool
	}{
		"refused by all tries":              {always(errReadOnly, 30), 1, false, false},
		"then accepted":                     {always(errReadOnly, 3), 1, false, true},
		"after a lost reply":                {append([]error{lost}, always(errReadOnly, 30)...), 1, true, false},
		"after a lost reply, for some time": {append([]error{lost}, always(errReadOnly, 8)...), 1, false, true},
		"after the first page was stored":   {append([]error{nil}, always(errReadOnly, 30)...), 1500, true, false},
		"no table after the first page":     {append([]error{nil}, always(core.ErrNotMigrated, 30)...), 1500, true, false},
		"no table":                          {always(core.ErrNotMigrated, 30), 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &turning{Memory: claim.NewMemory(claim.MemoryOptions{}), inserts: c.inserts}
				producer, err := core.NewProducer(heapindex.New(), store, core.ProducerOptions{})
				require.NoError(t, err)
				tasks := make([]core.Task, c.tasks)
				for i := range tasks {
					tasks[i] = core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}
				}
				err = producer.Schedule(t.Context(), tasks...)
				var unknown *core.OutcomeError
				require.Equal(t, c.unknown, errors.As(err, &unknown), "outcome unknown: %v", err)
				require.Equal(t, c.stored, err == nil, "%v", err)
				if !c.unknown && !c.stored {
					require.ErrorContains(t, err, "nothing was stored")
				}
			})
		})
	}
}

func TestAnIdleWorkerOnAServerThatRefusesWritesIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &turning{Memory: claim.NewMemory(claim.MemoryOptions{})}
		handler := core.HandlerFunc(func(context.Context, *core.Job) error { return nil })
		scheduler, err := core.New(heapindex.New(), store, handler, core.Options{})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- scheduler.Run(ctx) }()
		time.Sleep(15 * time.Second) // of the test's own time
		require.NoError(t, scheduler.Health().Ready())
		store.readOnly.Store(true)
		time.Sleep(11 * time.Second) // a heartbeat
		require.ErrorIs(t, scheduler.Health().Ready(), core.ErrNotReady)
		store.readOnly.Store(false)
		time.Sleep(11 * time.Second)
		require.NoError(t, scheduler.Health().Ready())
		stop()
		require.NoError(t, <-ended)
	})
}

// hangingClock is a store that does nothing, whose clock can be read once.
type hangingClock struct {
	turning
	reads atomic.Int64
}

func (s *hangingClock) Now(ctx context.Context) (time.Time, error) {
	if s.reads.Add(1) == 1 {
		return time.Now(), nil
	}
	<-ctx.Done()
	return time.Time{}, ctx.Err()
}

func TestTheClockIsReadAgainInTheCallersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hangingClock{turning: turning{Memory: claim.NewMemory(claim.MemoryOptions{}), inserts: []error{errReadOnly, errReadOnly}}}
		producer, err := core.NewProducer(heapindex.New(), store, core.ProducerOptions{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.Error(t, producer.Schedule(ctx, core.Task{ID: "1", Due: began}))
		require.Less(t, time.Since(began), 150*time.Millisecond)
	})
}
